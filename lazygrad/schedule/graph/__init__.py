"""The tensor graph as scheduling sees it: what is requested, which memory holds what, where elements lie."""
