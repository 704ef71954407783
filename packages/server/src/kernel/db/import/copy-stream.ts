import type { Client } from 'pg';

/** What this file uses of a connection of `pg`, which declares it only in part. */
interface CopyConnection {
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(message: string): void;
  readonly stream: { readonly writableNeedDrain: boolean; once(event: 'drain' | 'close', listener: () => void): void };
}

/** Sends lines to `COPY … FROM STDIN`, no faster than the server takes them. */
export function copyIn(client: Client, statement: string, lines: Iterable<string>): Promise<void> {
  return run(client, statement, {
    handleCopyInResponse(connection: CopyConnection) {
      // A failure of the server reaches `handleError`; one of the source ends the statement there.
      sendLines(connection, lines).catch((error: unknown) => {
        this.failure = error;
        connection.sendCopyFail('the source cannot be read');
      });
    },
  });
}

/** Calls `onLine` for each line of `COPY … TO STDOUT`, while it arrives: nothing is collected. The rest is ignored after it throws. */
export function copyOut(client: Client, statement: string, onLine: (line: Buffer) => void): Promise<void> {
  let rest = Buffer.alloc(0);
  return run(client, statement, {
    handleCopyData({ chunk }: { readonly chunk: Buffer }) {
      if (this.failure !== undefined) return;
      try {
        rest = takeLines(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]), onLine);
      } catch (error) {
        this.failure = error;
      }
    },
  });
}

interface Handlers {
  failure?: unknown;
  handleCopyInResponse?(connection: CopyConnection): void;
  handleCopyData?(message: { readonly chunk: Buffer }): void;
}

function run(client: Client, statement: string, handlers: Handlers): Promise<void> {
  return new Promise((resolve, reject) => {
    const submittable = Object.assign(handlers, {
      submit: (connection: CopyConnection) => connection.query(statement),
      handleCommandComplete() {},
      handleError: (error: unknown) => reject(toError(handlers.failure ?? error)),
      handleReadyForQuery: () => (handlers.failure === undefined ? resolve() : reject(toError(handlers.failure))),
    });
    client.query(submittable as never);
  });
}

const toError = (error: unknown) => (error instanceof Error ? error : new Error(String(error)));

const chunkLength = 65_536;

async function sendLines(connection: CopyConnection, lines: Iterable<string>): Promise<void> {
  let chunk = '';
  for (const line of lines) {
    chunk += line;
    if (chunk.length < chunkLength) continue;
    connection.sendCopyFromChunk(Buffer.from(chunk));
    chunk = '';
    const { stream } = connection;
    if (!stream.writableNeedDrain) continue;
    await new Promise<void>((resolve) => {
      stream.once('drain', resolve);
      stream.once('close', resolve);
    });
  }
  if (chunk !== '') connection.sendCopyFromChunk(Buffer.from(chunk));
  connection.endCopyFrom();
}

/** Returns what follows the last line end. Line ends inside of values are escaped. */
function takeLines(data: Buffer, onLine: (line: Buffer) => void): Buffer<ArrayBuffer> {
  let start = 0;
  for (let end = data.indexOf(10); end !== -1; end = data.indexOf(10, start)) {
    onLine(data.subarray(start, end + 1));
    start = end + 1;
  }
  // The receiver reuses its buffer.
  return Buffer.from(data.subarray(start));
}
