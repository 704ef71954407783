import { type AppError, toAppError } from '../kernel/app-error.ts';
import type { Log } from '../kernel/log.ts';
import { errorBody, retryAfterSeconds } from './error-body.ts';
import type { HttpCall } from './http-call.ts';

/** Answers with complete JSON text; headers that were set on the node response stay. */
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
 * Reads and drops the rest of the body for a moment, limited in time and bytes. Closing at once would make the kernel answer
 * further input with a reset, and the client would never see the refusal.
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

/** Logs the cause of an `Internal error`. */
export function logFailure(call: HttpCall, error: AppError, log: Log): void {
  if (error.code === 'internal' && error.details.cause !== undefined)
    log.error({ requestId: call.requestId, traceId: call.traceId, path: call.path, err: error.details.cause }, 'A request failed');
}

/** Answers with a failure in the format of the call's family. Anything thrown that is not an `AppError` is logged, and its message is not sent. */
export function sendError(call: HttpCall, failure: unknown, log: Log, status?: number): void {
  const error = toAppError(failure);
  logFailure(call, error, log);
  const { outgoing } = call;
  if (outgoing.destroyed || outgoing.writableEnded) return;
  if (outgoing.headersSent) {
    // Too late for a status: the only honest signal left is a broken transfer.
    outgoing.destroy();
    return;
  }
  if (call.identity === undefined && !call.readsBody && hasBody(call)) {
    // Nobody waits for the body of an unauthenticated client.
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
