"""Where values live: `placement` decides it, and `kernel_ast` makes the AST of each kernel of it."""
