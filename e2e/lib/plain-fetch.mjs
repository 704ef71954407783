// qwen-code 0.15.10 hands a dispatcher of its own undici to the fetch of Node, which refuses it from Node 26 on.
const native = globalThis.fetch;
globalThis.fetch = (input, init) => native(input, init === undefined ? undefined : { ...init, dispatcher: undefined });
