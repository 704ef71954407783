import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { printableLine } from './render/plain.ts';

/** Everything that a command uses of its process, so that a test can replace it. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Home folder of the user, which contains `.gatehouse`. */
  readonly userHome: string;
  readonly workingDir: string;
  /** The Node executable and the daemon's file. */
  readonly nodePath: string;
  readonly daemonEntry: string;
  /** Replaces this process with another program; absent where the platform does not support it. */
  readonly replaceProcess?: (file: string, args: readonly string[], env: Readonly<Record<string, string | undefined>>) => never;
  /** Opens an address in the browser of the user; absent where that is not possible. */
  readonly openBrowser?: (url: string) => void;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `handler` at each Ctrl-C until the returned function is called. */
  onInterrupt(handler: () => void): () => void;
}

/** Prints a line; escapes control characters beyond ASCII. */
export function printLine(stream: Writable, text: string): void {
  stream.write(`${printableLine(text)}\n`);
}

/** Writes with backpressure, for long or endless output. */
export async function writePaced(stream: Writable, chunk: string | Uint8Array): Promise<void> {
  if (!stream.write(chunk)) await once(stream, 'drain');
}
