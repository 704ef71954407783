import { type AppError, toAppError } from '../kernel/app-error.ts';
import type { Log } from '../kernel/log.ts';
import { errorBody, retryAfterSeconds } from './error-body.ts';
import type { HttpCall } from './http-call.ts';

/** Answers with JSON text that is complete; headers set before on the node response stay. */
export function sendJsonText(call: HttpCall, status: number, text: string): void {
  call.setHeader('content-type', 'application/json; charset=utf-8');
  call.setHeader('content-length', String(Buffer.byteLength(text)));
  call.writeHead(status);
  if (!call.discardsBody || call.expectsContinue || call.incoming.complete) {
    call.outgoing.end(text);
    return;
  }
  call.outgoing.write(text);
  discardRest(call);
}

/**
 * Closing at once would make the kernel answer what is still under way with a reset, and the client would never see
 * the refusal; so the rest of the body is read and dropped for a moment, bounded in time and bytes.
 */
function discardRest(call: HttpCall): void {
  let left = 16 * 1024 * 1024;
  const end = (): void => {
    clearTimeout(timer);
    call.outgoing.end();
  };
  const timer = setTimeout(end, 1_000);
  timer.unref();
  call.incoming.on('error', end).on('end', end).on('close', end);
  call.incoming.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) end();
  });
}

export function sendJson(call: HttpCall, status: number, body: object): void {
  sendJsonText(call, status, JSON.stringify(body));
}

export function sendEmpty(call: HttpCall, status: number): void {
  call.writeHead(status);
  call.outgoing.end();
}

/** Logs what hides behind `Internal error`. */
export function logFailure(call: HttpCall, error: AppError, log: Log): void {
  if (error.code === 'internal' && error.details.cause !== undefined)
    log.error({ requestId: call.requestId, traceId: call.traceId, path: call.path, err: error.details.cause }, 'A request failed');
}

/** Answers with a failure in the shape of the call's family. What was thrown and is no `AppError` is logged and leaves without its words. */
export function sendError(call: HttpCall, failure: unknown, log: Log, status?: number): void {
  const error = toAppError(failure);
  logFailure(call, error, log);
  const { outgoing } = call;
  if (outgoing.destroyed || outgoing.writableEnded) return;
  if (outgoing.headersSent) {
    // Too late for a status: the only honest sign that is left is a broken transfer.
    outgoing.destroy();
    return;
  }
  if (call.identity === undefined && !call.readsBody && hasBody(call)) {
    // A stranger's body is not waited for.
    call.setHeader('connection', 'close');
    call.discardsBody = true;
  }
  const retryAfter = retryAfterSeconds(error);
  if (retryAfter !== undefined) call.setHeader('retry-after', String(retryAfter));
  if (error.details.reason !== undefined) call.setHeader('x-gatehouse-error', error.details.reason);
  if (error.code === 'unauthenticated') call.setHeader('www-authenticate', call.challenge);
  sendJson(call, status ?? call.failureStatus ?? error.entry.http, errorBody(call.family, error, call.requestId));
}

function hasBody({ incoming }: HttpCall): boolean {
  const length = incoming.headers['content-length'];
  return !incoming.complete && ((length !== undefined && length !== '0') || incoming.headers['transfer-encoding'] !== undefined);
}
