// qwen-code 0.15.10 passes a dispatcher of its bundled undici to Node's fetch, which rejects it since Node 26.
const native = globalThis.fetch;
globalThis.fetch = (input, init) => native(input, init === undefined ? undefined : { ...init, dispatcher: undefined });
