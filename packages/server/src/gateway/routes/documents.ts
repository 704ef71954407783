import type { HttpCall } from '../http-call.ts';
import { sendJsonText } from '../reply.ts';

/** Serves a document generated from the contract; built and serialised at the first request for it. */
export function createDocumentRoute(build: () => object | Promise<object>): (call: HttpCall) => Promise<void> {
  let text: Promise<string> | undefined;
  return async (call) => {
    text ??= (async () => JSON.stringify(await build()))();
    sendJsonText(call, 200, await text);
  };
}
