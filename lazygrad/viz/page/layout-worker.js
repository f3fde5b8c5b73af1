// Layouts beside the page, which answers meanwhile.
import { layout } from "./layout.js";

onmessage = ({ data }) => postMessage({ number: data.number, ...layout(data) });
