import { connect, type Socket } from 'node:net';
import type { Held, HeldState } from './holder.ts';

// Holds the connections of `startHolder`; ends with its parent.
const answered = /^HTTP\/1\.1 (200|101) /;
const open = new Set<Socket>();
let marks = 0;
let bytes = 0;

function holdOne({ url, request, mark }: Held): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { hostname, port } = new URL(url);
  const wanted = Buffer.from(mark);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  let rest: Buffer = Buffer.alloc(0);
  let begun = false;
  socket.on('connect', () => socket.write(request));
  socket.on('data', (part: Buffer) => {
    if (!begun) {
      begun = true;
      if (answered.test(part.toString('latin1', 0, 20))) open.add(socket);
      resolve();
    }
    bytes += part.length;
    const all = rest.length > 0 ? Buffer.concat([rest, part]) : part;
    let from = 0;
    for (let at = all.indexOf(wanted); at !== -1; at = all.indexOf(wanted, from)) {
      marks += 1;
      from = at + wanted.length;
    }
    // A mark may be cut by the end of a read.
    rest = all.subarray(Math.max(from, all.length - wanted.length + 1));
  });
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    open.delete(socket);
    resolve();
  });
  return promise;
}

async function hold(held: Held): Promise<void> {
  let left = held.count;
  const opener = async (): Promise<void> => {
    while (left-- > 0) await holdOne(held);
  };
  // Fewer at a time than the backlog of a listener.
  await Promise.all(Array.from({ length: 32 }, opener));
}

const state = (): HeldState => ({ open: open.size, marks, bytes });
async function answer(question: Held | 'state'): Promise<void> {
  if (question !== 'state') await hold(question);
  process.send?.(state());
}
process.on('message', (question: Held | 'state') => void answer(question));
