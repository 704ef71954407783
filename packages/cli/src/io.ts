import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { printableLine } from './render/plain.ts';

/** Everything that a command touches of its process, so that a test can hand in its own. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Home folder of the user, under which `.gatehouse` is looked for. */
  readonly userHome: string;
  readonly workingDir: string;
  /** The Node that runs the daemon, and the daemon's file. */
  readonly nodePath: string;
  readonly daemonEntry: string;
  /** Puts another program in the place of this process; absent where the platform cannot. */
  readonly replaceProcess?: (file: string, args: readonly string[], env: Readonly<Record<string, string | undefined>>) => never;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `handler` at each Ctrl-C until the returned function is called. */
  onInterrupt(handler: () => void): () => void;
}

/** Everything that the command prints by lines goes through here; controls beyond ASCII are escaped. */
export function printLine(stream: Writable, text: string): void {
  stream.write(`${printableLine(text)}\n`);
}

/** Writes and waits while the reader is behind, so that nothing piles up here; for what may be long or without end. */
export async function writePaced(stream: Writable, chunk: string | Uint8Array): Promise<void> {
  if (!stream.write(chunk)) await once(stream, 'drain');
}
