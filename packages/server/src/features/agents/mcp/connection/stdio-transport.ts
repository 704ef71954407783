import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { JailedProcess } from '../../../../kernel/jail.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { FloodGuard } from './flood-guard.ts';

export interface StdioOptions {
  start(): Promise<JailedProcess>;
  /** Parser of the SDK: fails for anything but a message. */
  parse(value: unknown): JSONRPCMessage;
  readonly flood: FloodGuard;
  /** Runs after a pause; returns a function that cancels it. */
  readonly after: (ms: number, run: () => void) => () => void;
  /** Receives chunks of stderr. */
  readonly onErrorOutput: (text: string) => void;
}

const maxLineBytes = 4 * 1024 * 1024;
/** Programs may print anything before they are ready; one that prints nothing else is not a server. */
const maxBadLines = 100;
/** How long a server may take to exit on its own once its input is closed. */
const goodbyeMs = 500;

/**
 * The stdio transport of MCP over our own process. (That of the SDK inherits variables of the daemon's environment
 * and kills only the process that it started.)
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  readonly #options: StdioOptions;
  #process: JailedProcess | undefined;
  #starting: Promise<JailedProcess> | undefined;
  #line: Buffer[] = [];
  #lineBytes = 0;
  #badLines = 0;
  #closing: Promise<void> | undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#starting = this.#options.start();
    const started = await this.#starting;
    this.#process = started;
    const failed = (error: Error) => this.onerror?.(error);
    started.stdin.on('error', failed);
    started.stdout.on('error', failed);
    started.stderr.on('error', failed);
    started.stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    started.stderr.setEncoding('utf8');
    started.stderr.on('data', (text: string) => this.#options.onErrorOutput(text));
    void started.ended.then(() => this.close());
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#process?.stdin;
    if (stdin === undefined || !stdin.writable || this.#closing !== undefined) throw new Error('The program has ended');
    if (stdin.write(`${JSON.stringify(message)}\n`)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    stdin.once('drain', resolve).once('close', resolve);
    await promise;
  }

  /** Settles when nothing of the program is left. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // Closed during the start: it will be there in a moment.
    const started = this.#process ?? (await this.#starting?.catch(() => undefined));
    if (started !== undefined) {
      started.stdin.end();
      const cancel = this.#options.after(goodbyeMs, () => started.kill());
      await started.ended;
      cancel();
    }
    this.#line = [];
    this.onclose?.();
  }

  #take(chunk: Buffer): void {
    try {
      this.#options.flood.bytes(chunk.length);
      let from = 0;
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
        this.#hold(chunk.subarray(from, end));
        this.#flush();
        from = end + 1;
      }
      if (from < chunk.length) this.#hold(chunk.subarray(from));
    } catch (error) {
      this.#process?.stdout.removeAllListeners('data').resume();
      this.#process?.kill();
      this.onerror?.(error instanceof Error ? error : new Error('The output of the program is not usable'));
    }
  }

  #hold(part: Buffer): void {
    this.#lineBytes += part.length;
    if (this.#lineBytes > maxLineBytes) throw new Error(`The server sent a message of more than ${maxLineBytes} bytes`);
    this.#line.push(part);
  }

  #flush(): void {
    const line = Buffer.concat(this.#line).toString('utf8').trim();
    this.#line = [];
    this.#lineBytes = 0;
    if (line === '') return;
    this.#options.flood.message();
    let message: JSONRPCMessage;
    try {
      message = this.#options.parse(parseJson(line));
    } catch {
      this.#badLines += 1;
      if (this.#badLines > maxBadLines) throw new Error('The output of the program is not MCP');
      return;
    }
    this.#badLines = 0;
    this.onmessage?.(message);
  }
}
