import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { openRaw } from './raw.ts';

export const opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface FrameShape {
  readonly opcode: number;
  readonly payload?: Buffer | string;
  readonly fin?: boolean;
  /** The three reserved bits, as a number from 0 to 7. */
  readonly reserved?: number;
  readonly masked?: boolean;
  /** Claimed instead of the true length, in the 64-bit form. */
  readonly claims?: bigint;
}

/** One frame as a client sends it (RFC 6455 §5.2), with all its faults. */
export function frame(shape: FrameShape): Buffer {
  const payload = Buffer.from(shape.payload ?? '');
  const masked = shape.masked !== false;
  const first = (shape.fin === false ? 0 : 0x80) | ((shape.reserved ?? 0) << 4) | shape.opcode;
  const maskBit = masked ? 0x80 : 0;
  let head: Buffer;
  if (shape.claims !== undefined || payload.length > 0xffff) {
    head = Buffer.alloc(10);
    head[1] = maskBit | 127;
    head.writeBigUInt64BE(shape.claims ?? BigInt(payload.length), 2);
  } else if (payload.length > 125) {
    head = Buffer.alloc(4);
    head[1] = maskBit | 126;
    head.writeUInt16BE(payload.length, 2);
  } else head = Buffer.from([0, maskBit | payload.length]);
  head[0] = first;
  if (!masked) return Buffer.concat([head, payload]);
  const key = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);
  return Buffer.concat([head, key, payload.map((byte, at) => byte ^ (key[at % 4] ?? 0))]);
}

/** Payload of a close frame: a code and the bytes of its reason. */
export function closePayload(code: number, reason: Buffer | string = ''): Buffer {
  const head = Buffer.alloc(2);
  head.writeUInt16BE(code);
  return Buffer.concat([head, Buffer.from(reason)]);
}

/** What the server sent after the handshake. */
export interface Heard {
  readonly texts: string[];
  pongs: number;
  /** Code of the server's close frame. */
  closeCode: number | undefined;
  /** Frames that a server must not send: masked, reserved bits, unknown opcodes. */
  bad: number;
}

/** A WebSocket whose frames are written by hand. */
export interface FrameSocket {
  readonly socket: Socket;
  readonly heard: Heard;
  readonly closed: Promise<void>;
  /** Resolves when `done` holds for what was received or the connection ended; false after `withinMs`. */
  until(done: (heard: Heard) => boolean, withinMs: number): Promise<boolean>;
}

/** Opens a WebSocket on a bare connection; rejects when the handshake is refused. */
export async function openFrames(options: { readonly port: number; readonly token: string }): Promise<FrameSocket> {
  const socket = openRaw(options);
  const heard: Heard = { texts: [], pongs: 0, closeCode: undefined, bad: 0 };
  let waiting: (() => void) | undefined;
  let ended = false;
  let rest = Buffer.alloc(0);
  let shook = false;
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => {
      ended = true;
      waiting?.();
      resolve();
    });
  });
  const opened = new Promise<void>((resolve, reject) => {
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      if (!shook) {
        const at = rest.indexOf('\r\n\r\n');
        if (at === -1) return;
        const head = rest.subarray(0, at).toString('latin1');
        if (!head.startsWith('HTTP/1.1 101')) return reject(new Error(`the handshake was refused: ${head}`));
        shook = true;
        rest = rest.subarray(at + 4);
        resolve();
      }
      rest = readFrames(rest, heard);
      waiting?.();
    });
    socket.on('close', () => reject(new Error('the connection ended in the handshake')));
  });
  socket.on('connect', () =>
    socket.write(
      [
        'GET /ws HTTP/1.1',
        'host: 127.0.0.1',
        'connection: Upgrade',
        'upgrade: websocket',
        'sec-websocket-version: 13',
        `sec-websocket-key: ${randomBytes(16).toString('base64')}`,
        `authorization: Bearer ${options.token}`,
        '\r\n',
      ].join('\r\n'),
    ),
  );
  await opened;
  return {
    socket,
    heard,
    closed,
    async until(done, withinMs) {
      const deadline = performance.now() + withinMs;
      while (!ended && !done(heard)) {
        const left = deadline - performance.now();
        if (left <= 0) return false;
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, left);
          waiting = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      return true;
    },
  };
}

/** Takes whole frames of the server off the front; the rest is the beginning of one. */
function readFrames(bytes: Buffer, heard: Heard): Buffer<ArrayBuffer> {
  let rest = Buffer.from(bytes);
  for (;;) {
    if (rest.length < 2) return rest;
    const first = rest[0] ?? 0;
    const second = rest[1] ?? 0;
    const short = second & 0x7f;
    const headLength = short === 127 ? 10 : short === 126 ? 4 : 2;
    if (rest.length < headLength) return rest;
    const length = short === 127 ? Number(rest.readBigUInt64BE(2)) : short === 126 ? rest.readUInt16BE(2) : short;
    if (rest.length < headLength + length) return rest;
    const payload = rest.subarray(headLength, headLength + length);
    const kind = first & 0x0f;
    if ((first & 0x70) !== 0 || second >= 0x80) heard.bad += 1;
    if (kind === opcode.text) heard.texts.push(payload.toString('utf8'));
    else if (kind === opcode.pong) heard.pongs += 1;
    else if (kind === opcode.close) heard.closeCode = payload.length < 2 ? 1005 : payload.readUInt16BE(0);
    else if (kind !== opcode.ping) heard.bad += 1;
    rest = rest.subarray(headLength + length);
  }
}
