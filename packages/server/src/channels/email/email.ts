import { readFile } from 'node:fs/promises';
import type { Act, Adapter, AdapterDeps, Download, Ended, FetchedMessage, LookUp, OpenWire, OutgoingPart, Place, SendResult, Sink } from '../port.ts';
import { isAddress, oneLine } from './address.ts';
import { actOnMail, downloadFile, fetchMails, lookUpSent, storeSent } from './calls.ts';
import { compose, messageIdOf } from './compose.ts';
import type { EmailKeys } from './config.ts';
import { ImapConnection, type WireDeps, ServerFailed } from './imap.ts';
import { maxAttachmentBytes } from './platform.ts';
import { Quota } from './quota.ts';
import { type Memory, Receiver } from './receive.ts';
import { checkSmtp, sendOverSmtp } from './smtp.ts';
import { Threads } from './threads.ts';

export interface EmailConfig extends EmailKeys {
  /** Silence after which the server is asked for a sign of life, and time that it has for an answer. */
  readonly idleMs?: number;
  readonly answerMs?: number;
  /** Largest answer of IMAP, in its smallest parts. */
  readonly maxResponseTokens?: number;
}

export const openEmail: OpenWire<EmailConfig> = (deps) => new EmailAdapter(deps);

const stopped: Ended = { ended: 'stopped', text: 'Stopped' };

interface CallOptions {
  readonly signal: AbortSignal;
}

class EmailAdapter implements Adapter {
  readonly #deps: AdapterDeps<EmailConfig>;
  readonly #memory: Memory = { threads: new Threads(), quota: new Quota(), unreadable: new Set() };
  /** Ends the connection that runs. */
  #refuse: ((text: string) => void) | undefined;

  constructor(deps: AdapterDeps<EmailConfig>) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal, sink: Sink): Promise<Ended> {
    const ending = new AbortController();
    let refused: Ended | undefined;
    this.#refuse = (text) => {
      refused = { ended: 'unauthorized', text };
      ending.abort();
    };
    try {
      return await this.#receive(AbortSignal.any([signal, ending.signal]), sink);
    } catch (error) {
      if (signal.aborted) return stopped;
      if (refused !== undefined) return refused;
      if (error instanceof ServerFailed) return { ended: error.kind === 'unauthorized' ? 'unauthorized' : 'transient', text: error.message };
      this.#deps.log.warn({ err: error }, 'Email: the connection failed');
      return { ended: 'transient', text: 'Failed to read the mails; the log says why' };
    } finally {
      this.#refuse = undefined;
    }
  }

  async #receive(signal: AbortSignal, sink: Sink): Promise<Ended> {
    const { config } = this.#deps;
    const wire = await this.#wire();
    using imap = await ImapConnection.open(wire, config.mailbox, { signal });
    const smtp = await checkSmtp(wire, signal);
    if (smtp.is !== 'ready') throw new ServerFailed(signal.aborted ? 'transient' : smtp.is, smtp.text);
    const receiver = await Receiver.create({ deps: this.#deps, imap, sink, signal, memory: this.#memory });
    sink.connected(config.address);
    // The connection is closed when this returns.
    return await receiver.run();
  }

  async send(part: OutgoingPart, { key, signal }: CallOptions & { readonly key: string }): Promise<SendResult> {
    const { config, clock, log } = this.#deps;
    const { conversationId, threadId, attachment } = part;
    if (!isAddress(conversationId)) return { is: 'rejected', kind: 'target', text: `Not an address: ${oneLine(conversationId, 100)}` };
    if (attachment !== undefined && attachment.bytes > maxAttachmentBytes)
      return { is: 'rejected', kind: 'size', text: `The file is larger than ${maxAttachmentBytes} bytes` };
    let wire: WireDeps;
    let file: Uint8Array | undefined;
    try {
      wire = await this.#wire();
      file = await attachment?.read();
    } catch (error) {
      log.warn({ err: error }, 'Email: failed to prepare a mail');
      return { is: 'notSent', text: error instanceof ServerFailed ? error.message : 'The file can’t be read' };
    }
    const thread = threadId === undefined ? undefined : await this.#memory.threads.find(wire, conversationId, threadId, signal);
    const mail = await compose({ config, key, part, thread, file, nowMs: clock.now() }).catch((error: unknown) => {
      log.warn({ err: error }, 'Email: failed to compose a mail');
    });
    if (mail === undefined) return { is: 'rejected', kind: 'invalid', text: 'The mail can’t be composed; the log says why' };
    const { result, isLoginRefused } = await sendOverSmtp(wire, conversationId, mail.raw, signal);
    if (isLoginRefused && 'text' in result) this.#refuse?.(result.text);
    if (result.is !== 'sent') return result;
    const { sentMailbox } = config;
    if (sentMailbox !== undefined)
      await storeSent(wire, sentMailbox, mail, { signal }).catch((error: unknown) => log.warn({ err: error }, 'Email: a sent mail was not stored'));
    return { is: 'sent', platformId: mail.messageId };
  }

  async lookUp(_part: OutgoingPart, { key, ...options }: CallOptions & { readonly key: string; readonly sinceMs: number }): Promise<LookUp> {
    const wire = await this.#wireOrFailure();
    if ('is' in wire) return { is: 'unclear', text: wire.text, retry: true };
    return lookUpSent(wire, messageIdOf(key, this.#deps.config), options);
  }

  async fetch(
    place: Place,
    options: CallOptions & { readonly limit: number; readonly before?: string | undefined },
  ): Promise<Act<readonly FetchedMessage[]>> {
    const wire = await this.#wireOrFailure();
    return 'is' in wire ? wire : fetchMails(wire, place, options);
  }

  async download(ref: string, options: CallOptions): Promise<Download> {
    const wire = await this.#wireOrFailure();
    return 'is' in wire ? { is: 'unavailable', text: wire.text } : downloadFile(wire, ref, options);
  }

  async action(
    name: string,
    params: Readonly<Record<string, unknown>>,
    place: Place,
    { signal }: CallOptions,
  ): Promise<Act<Readonly<Record<string, unknown>>>> {
    const wire = await this.#wireOrFailure();
    return 'is' in wire ? wire : actOnMail(wire, name, params, { place, signal });
  }

  async #wire(): Promise<WireDeps> {
    const { config, clock } = this.#deps;
    if (config.tlsCaPath === undefined) return { config, clock, ca: undefined };
    try {
      return { config, clock, ca: await readFile(config.tlsCaPath) };
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'failed';
      throw new ServerFailed('transient', `The certificates of tlsCaPath can’t be read: ${code}`);
    }
  }

  async #wireOrFailure(): Promise<WireDeps | { readonly is: 'failed'; readonly kind: 'unavailable'; readonly text: string }> {
    return this.#wire().catch((error: unknown) => ({
      is: 'failed' as const,
      kind: 'unavailable' as const,
      text: error instanceof Error ? error.message : '',
    }));
  }
}
