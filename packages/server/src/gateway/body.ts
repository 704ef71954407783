import { isUtf8 } from 'node:buffer';
import { AppError } from '../kernel/app-error.ts';
import { parseJson } from '../kernel/json.ts';
import type { HttpCall } from './http-call.ts';

/** A body that is incomplete by then must have arrived at `minBytes` at least: a client that sends single bytes must not hold a connection. */
const paceMs = 8_000;
const minBytes = 64 * 1024;
/** The listener waits longer, for uploads. */
const wholeMs = 30_000;

/** Reads a JSON body of at most `limit` bytes (http-gateway.md §8). Nothing is parsed before all of it was accepted. */
export async function readJsonBody(call: HttpCall, limit: number, parse: (text: string) => unknown = parseJson): Promise<unknown> {
  const { headers } = call.incoming;
  const type = headers['content-type'];
  if (type !== undefined && !/^application\/json\s*(;|$)/i.test(type))
    throw refusedBody(call, new AppError('unsupported_media_type', 'The content type must be application/json'));
  const bytes = await readWhole(call, limit);
  if (!isUtf8(bytes)) throw new AppError('parse_error', 'The body is not valid UTF-8');
  return parse(bytes.toString('utf8'));
}

/** Names the setting when a body is refused for its size, so that the operator can raise it. */
async function readWhole(call: HttpCall, limit: number): Promise<Buffer> {
  try {
    return await readBody(call, limit);
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'payload_too_large') throw error;
    throw new AppError(error.code, `${error.message}; gateway.httpBodyLimitBytes sets the limit`, error.details);
  }
}

/** How long a body may take. */
export interface BodyTime {
  readonly wholeMs: number;
  /** Average required from the start, instead of one check against `minBytes`. */
  readonly bytesPerSec?: number;
}

/** Reads the raw body; `payload_too_large` as soon as the declared or counted length exceeds `limit`, `timeout` when it takes too long. */
export function readBody(call: HttpCall, limit: number, time: BodyTime = { wholeMs }): Promise<Buffer> {
  const { incoming } = call;
  refuseEncoded(call);
  const declared = incoming.headers['content-length'];
  if (declared !== undefined && Number(declared) > limit) throw refusedBody(call, tooLarge(limit));
  if (call.expectsContinue) call.outgoing.writeContinue();
  call.readsBody = true;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let settled = false;
    const refuse = (error: AppError): void => {
      settle();
      // The listeners keep running while the rest is dropped, and the earlier chunks are useless.
      chunks.length = 0;
      reject(error);
    };
    const giveUp = (): void => refuse(lateBody(call));
    let pace: NodeJS.Timeout | undefined;
    const checkPace = (atMs: number, wantedBytes: number): void => {
      if (atMs >= time.wholeMs || size < wantedBytes) return giveUp();
      schedulePaceCheck(atMs);
    };
    const schedulePaceCheck = (sinceMs: number): void => {
      const { bytesPerSec } = time;
      const atMs = bytesPerSec !== undefined ? sinceMs + 1_000 : sinceMs === 0 ? paceMs : time.wholeMs;
      pace = setTimeout(() => checkPace(atMs, bytesPerSec === undefined ? minBytes : (bytesPerSec * atMs) / 1_000), atMs - sinceMs);
      pace.unref();
    };
    // Nearly all bodies arrive with their headers, which is known once these have been processed: they need no timer.
    process.nextTick(() => {
      if (!settled && !incoming.complete) schedulePaceCheck(0);
    });
    // The listeners go away with the request; removing them would cost more than keeping them.
    const settle = (): void => {
      settled = true;
      clearTimeout(pace);
    };
    const onData = (chunk: Buffer): void => {
      if (settled) return;
      size += chunk.length;
      if (size > limit) refuse(refusedBody(call, tooLarge(limit)));
      else chunks.push(chunk);
    };
    const onEnd = (): void => {
      if (settled) return;
      if (call.endedBy !== undefined) return refuse(call.endedBy);
      settle();
      const [only] = chunks;
      resolve(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, size));
    };
    const onGone = (): void => {
      if (settled) return;
      settle();
      reject(new AppError('cancelled', 'The client left before its request was complete'));
    };
    incoming.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}

/** Refuses compressed bodies: nothing limits what one would unpack to. */
export function refuseEncoded(call: HttpCall): void {
  const encoding = call.incoming.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw refusedBody(call, new AppError('unsupported_media_type', 'The body must not be compressed: content-encoding must be identity'));
}

/** Returns the error for a slow client: 408 instead of the catalogue's status for `timeout`, which means a slow server. */
export function lateBody(call: HttpCall): AppError {
  call.failureStatus = 408;
  return refusedBody(call, new AppError('timeout', 'The body of the request was not complete in time'));
}

export function tooLarge(limit: number): AppError {
  return new AppError('payload_too_large', `The body must not be larger than ${limit} bytes`);
}

/** Closes the connection after the refusal: the rest of the body must not be taken for a request. */
export function refusedBody(call: HttpCall, error: AppError): AppError {
  call.setHeader('connection', 'close');
  call.discardsBody = true;
  return error;
}
