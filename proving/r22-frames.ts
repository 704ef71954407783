import { RpcReply } from '@gatehouse/contract';
import { freePort } from '@gatehouse/testkit/free-port';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { closePayload, frame, type FrameSocket, opcode, openFrames } from './lib/frames.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { ailmentOf, rssMb } from './lib/process.ts';
import { proofConfig } from './lib/provider.ts';
import { inParallel } from './lib/raw.ts';
import { type Random, randomFrom } from './lib/random.ts';

/** R22: whatever frames arrive on a WebSocket, the daemon stays up, and closes with the code that RFC 6455 §7.4 defines for it. */
export interface R22Report {
  readonly sequences: Readonly<Record<string, number>>;
  /** Sequences that ended differently than they must, each in one line. */
  readonly wrong: readonly string[];
  /** Empty while the daemon lives and answers as before. */
  readonly ailment: string;
}

/** Small, so that thousands of sequences can pass it. */
const maxMessageBytes = 65_536;
const answerMs = 5_000;

/** The expected end of a sequence. */
type Ending =
  | { readonly code: number }
  /** It continues: the ping call after it is answered, with at most so many pongs and replies with these error codes before. */
  | { readonly alive: { readonly errors?: readonly number[]; readonly maxPongs?: number } }
  /** Any of these codes, or only the end of the connection. */
  | 'any';

interface Sequence {
  readonly bytes: readonly Buffer[];
  readonly ending: Ending;
  /** The connection is cut after the bytes. */
  readonly cut?: boolean;
}

const request = (id: string) => JSON.stringify({ jsonrpc: '2.0', id, method: 'system.ping' });
const pick = <T>(random: Random, items: readonly T[]): T => items[random.int(items.length)] as T;
const noise = (random: Random, length: number) => Buffer.from(Array.from({ length }, () => random.int(256)));
const badUtf8 = (random: Random) =>
  pick(random, [
    Buffer.from([0xff]),
    Buffer.from([0xc0, 0xaf]),
    Buffer.from([0xed, 0xa0, 0x80]),
    Buffer.from([0xf4, 0x90, 0x80, 0x80]),
    Buffer.from([0x80]),
  ]);

/** Splits the bytes into fragments of random size, with pings and pongs between them. */
function fragments(random: Random, kind: number, payload: Buffer, between = true): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 0; at < payload.length || frames.length === 0;) {
    const size = 1 + random.int(Math.max(1, payload.length >> random.int(4)));
    const part = payload.subarray(at, at + size);
    frames.push(frame({ opcode: at === 0 ? kind : opcode.continuation, fin: at + size >= payload.length, payload: part }));
    at += size;
    if (between && at < payload.length && random.int(3) === 0) frames.push(frame({ opcode: pick(random, [opcode.ping, opcode.pong]), payload: 'x' }));
  }
  return frames;
}

const kinds: Readonly<Record<string, (random: Random) => Sequence>> = {
  'fragments with controls between': (random) => ({
    bytes: fragments(random, opcode.text, Buffer.from(request('fragmented'))),
    ending: { alive: {} },
  }),
  'empty fragments': (random) => ({
    bytes: [
      frame({ opcode: opcode.text, fin: false }),
      ...Array.from({ length: 1 + random.int(50) }, () => frame({ opcode: opcode.continuation, fin: false })),
      frame({ opcode: opcode.continuation, payload: request('empty') }),
    ],
    ending: { alive: {} },
  }),
  'text that is not a request': (random) => ({
    bytes: [frame({ opcode: opcode.text, payload: pick(random, ['', '{', 'null', '[]', '"x"', '{"jsonrpc":"1.0"}', '[1,2]', '[[]]']) })],
    ending: { alive: {} },
  }),
  'deep nesting': (random) => ({
    bytes: [frame({ opcode: opcode.text, payload: pick(random, ['[', '{"a":']).repeat(65 + random.int(8_000)) })],
    ending: { alive: { errors: [-32700] } },
  }),
  'binary message': (random) => ({
    bytes: fragments(random, opcode.binary, noise(random, 1 + random.int(300))),
    ending: { alive: { errors: [-32700] } },
  }),
  'unasked pong': (random) => ({
    bytes: [frame({ opcode: opcode.pong, payload: noise(random, random.int(126)) })],
    ending: { alive: { maxPongs: 0 } },
  }),
  'ping flood': (random) => {
    const count = 200 + random.int(2_000);
    const ping = frame({ opcode: opcode.ping, payload: noise(random, random.int(126)) });
    return { bytes: [Buffer.concat(Array.from({ length: count }, () => ping))], ending: { alive: { maxPongs: count } } };
  },
  'not masked': (random) => ({
    bytes: [frame({ opcode: pick(random, [opcode.text, opcode.ping, opcode.binary]), payload: 'x', masked: false })],
    ending: { code: 1002 },
  }),
  'reserved bits': (random) => ({
    bytes: [frame({ opcode: pick(random, [opcode.text, opcode.ping, opcode.binary]), payload: 'x', reserved: 1 + random.int(7) })],
    ending: { code: 1002 },
  }),
  'reserved opcode': (random) => ({
    bytes: [frame({ opcode: pick(random, [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]), payload: 'x' })],
    ending: { code: 1002 },
  }),
  'control in fragments': (random) => ({
    bytes: [frame({ opcode: pick(random, [opcode.ping, opcode.pong, opcode.close]), fin: false })],
    ending: { code: 1002 },
  }),
  'control too long': (random) => ({
    bytes: [frame({ opcode: pick(random, [opcode.ping, opcode.pong, opcode.close]), payload: Buffer.alloc(126 + random.int(400), 0x61) })],
    ending: { code: 1002 },
  }),
  'continuation of nothing': () => ({ bytes: [frame({ opcode: opcode.continuation, payload: 'x' })], ending: { code: 1002 } }),
  'message inside a message': (random) => ({
    bytes: [frame({ opcode: opcode.text, fin: false, payload: '{' }), frame({ opcode: pick(random, [opcode.text, opcode.binary]), payload: 'x' })],
    ending: { code: 1002 },
  }),
  'huge length': (random) => ({
    bytes: [
      frame({ opcode: pick(random, [opcode.text, opcode.binary]), payload: 'x', claims: BigInt(maxMessageBytes + 1) << BigInt(random.int(36)) }),
    ],
    ending: { code: 1009 },
  }),
  'length beyond all': (random) => ({
    bytes: [frame({ opcode: opcode.text, payload: 'x', claims: (1n << 63n) - 1n - BigInt(random.int(1_000)) })],
    ending: { code: 1009 },
  }),
  'fragments that are too much together': (random) => ({
    bytes: fragments(random, opcode.text, Buffer.alloc(maxMessageBytes + 1 + random.int(20_000), 0x61), false),
    ending: { code: 1009 },
  }),
  'more than 16,384 fragments': () => ({
    bytes: [
      frame({ opcode: opcode.text, fin: false, payload: 'x' }),
      Buffer.concat(Array.from({ length: 16_400 }, () => frame({ opcode: opcode.continuation, fin: false }))),
    ],
    ending: { code: 1008 },
  }),
  'text that is not UTF-8': (random) => ({
    bytes: fragments(random, opcode.text, Buffer.concat([Buffer.from('{"a":"'), badUtf8(random), Buffer.from('"}')])),
    ending: { code: 1007 },
  }),
  'close reason that is not UTF-8': (random) => ({
    bytes: [frame({ opcode: opcode.close, payload: closePayload(1000, badUtf8(random)) })],
    ending: { code: 1007 },
  }),
  'close code that is none': (random) => ({
    bytes: [
      frame({
        opcode: opcode.close,
        payload: closePayload(pick(random, [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535])),
      }),
    ],
    ending: { code: 1002 },
  }),
  'close with one byte': (random) => ({ bytes: [frame({ opcode: opcode.close, payload: noise(random, 1) })], ending: { code: 1002 } }),
  'close as it should be': (random) => {
    const code = pick(random, [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 4000, 4999]);
    return { bytes: [frame({ opcode: opcode.close, payload: closePayload(code, 'x'.repeat(random.int(124))) })], ending: { code } };
  },
  'message behind a close': () => ({
    bytes: [frame({ opcode: opcode.close, payload: closePayload(1000) }), frame({ opcode: opcode.text, payload: request('late') })],
    ending: { code: 1000 },
  }),
  'frame that breaks off': (random) => {
    const whole = frame({ opcode: pick(random, [opcode.text, opcode.ping]), payload: noise(random, random.int(120)) });
    return { bytes: [whole.subarray(0, 1 + random.int(whole.length - 1))], ending: 'any', cut: true };
  },
  noise: (random) => ({ bytes: [noise(random, 1 + random.int(600))], ending: 'any', cut: true }),
  'damaged frames': (random) => {
    const bytes = Buffer.concat(fragments(random, opcode.text, Buffer.from(request('damaged'))));
    for (let flips = 1 + random.int(4); flips > 0; flips -= 1) {
      const at = random.int(bytes.length);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << random.int(8));
    }
    return { bytes: [bytes], ending: 'any', cut: true };
  },
};

export async function proveFrames(options: {
  readonly sequences: number;
  readonly seed: number;
  /** Only these kinds. */
  readonly kinds?: readonly string[];
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}): Promise<R22Report> {
  const home = await makeHome();
  const port = await freePort();
  await writeConfig(home, proofConfig('http://127.0.0.1:9/v1', { gateway: { wsMaxMessageBytes: maxMessageBytes } }));
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const { token } = daemon;
    const counts: Record<string, number> = {};
    const wrong: string[] = [];
    const names = options.kinds ?? Object.keys(kinds);
    const before = rssMb(daemon.pid);
    const order = Array.from({ length: options.sequences }, (_, n) => n);
    await inParallel(order, 16, async (n) => {
      const name = names[n % names.length] ?? '';
      // A separate generator: concurrent cases do not change its course.
      const random = randomFrom(options.seed + n * 7919);
      counts[name] = (counts[name] ?? 0) + 1;
      const found = await play({ port, token }, (kinds[name] ?? missing(name))(random), random).catch((error: unknown) => String(error));
      if (found !== undefined) wrong.push(`${name} (sequence ${n}, seed ${options.seed}): ${found}`);
    });
    const ailment = await ailmentOf(daemon, before, 200);
    options.progress?.(`R22: ${options.sequences} sequences of ${names.length} kinds, ${wrong.length} wrong${ailment === '' ? '' : `; ${ailment}`}`);
    return { sequences: counts, wrong, ailment };
  } finally {
    await daemon?.kill();
    await removeHome(home);
  }
}

/** Plays one sequence on a new connection; returns what was wrong. */
async function play(target: { readonly port: number; readonly token: string }, sequence: Sequence, random: Random): Promise<string | undefined> {
  const peer = await openFrames(target);
  try {
    const { socket, heard } = peer;
    // As one write or as many: frames must not depend on how they are cut.
    if (random.int(2) === 0) socket.write(Buffer.concat(sequence.bytes));
    else for (const bytes of sequence.bytes) socket.write(bytes);
    const { ending } = sequence;
    if (ending === 'any') {
      if (sequence.cut === true) socket.end();
      return (await peer.until(() => false, answerMs)) ? undefined : 'the connection did not end';
    }
    if ('code' in ending) {
      const ended = await peer.until(({ closeCode }) => closeCode !== undefined, answerMs);
      if (heard.texts.some((text) => text.includes('"late"'))) return 'answered a message behind the close';
      if (heard.closeCode === ending.code && heard.bad === 0) return undefined;
      return `${ended ? `closed with ${heard.closeCode}` : 'was not closed'} instead of ${ending.code}`;
    }
    return await checkAlive(peer, ending.alive);
  } finally {
    peer.socket.destroy();
  }
}

async function checkAlive(
  peer: FrameSocket,
  expected: { readonly errors?: readonly number[]; readonly maxPongs?: number },
): Promise<string | undefined> {
  const { socket, heard } = peer;
  socket.write(frame({ opcode: opcode.text, payload: request('behind') }));
  const answered = await peer.until(({ texts, closeCode }) => closeCode !== undefined || texts.some((text) => text.includes('"behind"')), answerMs);
  if (!answered || heard.closeCode !== undefined) return `the call behind it was not answered (closed with ${heard.closeCode})`;
  const replies = heard.texts.flatMap((text) => RpcReply().or(RpcReply().array()).parse(JSON.parse(text)));
  const errors = replies.flatMap((reply) => (reply.error === undefined ? [] : [reply.error.code]));
  if (errors.includes(-32603)) return 'an internal error';
  if (expected.errors !== undefined && JSON.stringify(errors) !== JSON.stringify(expected.errors)) return `errors ${errors.join(', ')}`;
  if (expected.maxPongs !== undefined && heard.pongs > expected.maxPongs) return `${heard.pongs} pongs`;
  return heard.bad === 0 ? undefined : `${heard.bad} frames that no server may send`;
}

function missing(name: string): never {
  throw new Error(`there is no kind of sequence ${name}`);
}
