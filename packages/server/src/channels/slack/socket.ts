import type net from 'node:net';
import { SocketModeClient, type SocketModeOptions } from '@slack/socket-mode';
import { Agent, buildConnector } from 'undici';
import * as z from 'zod';
import { parseJson } from '../../kernel/json.ts';
import type { AdapterDeps, Ended } from '../port.ts';
import { answerOf, clientOptions, isUnauthorized, type NotOk, refusalText, silentLog } from './client.ts';
import type { SlackKeys as SlackConfig } from './config.ts';

/** The library pings three times as often as its limit for a pong. */
const pingMs = 20_000;
const pingsPerLimit = 3;
/** Time for the address, the connection and the greeting. */
const connectMs = 30_000;
/** How often it is checked whether anything came; without a byte in two such times the connection is dead. */
const lifeMs = 20_000;
const silentChecks = 2;
const goodbyeMs = 1_000;
const maxFrameBytes = 4_194_304;

const Frame = z.object({
  type: z.string().regex(/^[a-z_]{1,64}$/),
  reason: z.string().nullish(),
  envelope_id: z.string().min(1).max(128).nullish(),
  payload: z.unknown().optional(),
});
type Frame = z.output<typeof Frame>;
const EventPayload = z.object({ event: z.object({ type: z.string().regex(/^[a-z_.]{1,64}$/) }) });
/** Events of the library about itself, which nothing that comes over the wire may cause. */
const ownEvents: ReadonlySet<string> = new Set([
  'authenticated',
  'close',
  'connected',
  'connecting',
  'disconnected',
  'disconnecting',
  'error',
  'outgoing_message',
  'reconnecting',
  'slack_event',
  'ws_message',
]);

/** Something that Slack expects an acknowledgement of, within three seconds. */
export interface Envelope {
  readonly type: string;
  readonly body: unknown;
  acknowledge(): void;
}

export interface SocketHandlers {
  /** The connection is usable. */
  hello(): void;
  envelope(envelope: Envelope): void;
  /** The peer proved that it is alive. */
  alive(): void;
}

/** Why a connection ended; `refresh`: Slack asks for another one. */
export type SocketEnd = Ended | { readonly ended: 'refresh' };

interface SlackEvent {
  readonly type: string;
  readonly body: unknown;
  ack(): Promise<void>;
}

/** Passes to the library only what it can handle: it does not check what comes over the wire. */
class CheckedClient extends SocketModeClient {
  readonly #heard: (frame: Frame) => void;

  constructor(options: SocketModeOptions, heard: (frame: Frame) => void) {
    super(options);
    this.#heard = heard;
  }

  protected override async onWebSocketMessage(data: string | ArrayBuffer, isBinary: boolean): Promise<void> {
    const frame = typeof data === 'string' && !isBinary ? frameOf(data) : undefined;
    if (frame === undefined) return;
    this.#heard(frame);
    if (frame.type !== 'disconnect') await super.onWebSocketMessage(data, isBinary);
  }
}

/** One connection in socket mode, from the request for its address to its end. */
export class SlackSocket {
  readonly #deps: AdapterDeps<SlackConfig>;
  readonly #handlers: SocketHandlers;
  readonly #signal: AbortSignal;
  readonly #stopping = new AbortController();
  readonly #ended = Promise.withResolvers<SocketEnd>();
  readonly #agent: Agent;
  readonly #client: CheckedClient;
  #socket: net.Socket | undefined;
  #end: SocketEnd | undefined;
  #cancelTimer = () => {};

  constructor(deps: AdapterDeps<SlackConfig>, signal: AbortSignal, handlers: SocketHandlers) {
    const { clock, config } = deps;
    this.#deps = deps;
    this.#handlers = handlers;
    this.#signal = signal;
    this.#agent = this.#createAgent();
    const options = clientOptions(clock, config.apiUrl, () => this.#stopping.signal);
    this.#client = new CheckedClient(
      {
        appToken: config.appToken,
        autoReconnectEnabled: false,
        clientPingTimeout: pingMs * pingsPerLimit,
        logger: silentLog,
        dispatcher: this.#agent,
        clientOptions: { ...options, headers: { Authorization: `Bearer ${config.appToken}` } },
      },
      (frame) => this.#heard(frame),
    );
  }

  /** Resolves when the connection has ended; never rejects. */
  async run(): Promise<SocketEnd> {
    const stop = () => this.close({ ended: 'stopped', text: 'Stopped' });
    this.#signal.addEventListener('abort', stop, { once: true });
    this.#timer(connectMs, () => this.close({ ended: 'transient', text: `Slack did not accept a connection within ${connectMs / 1_000} s` }));
    this.#client.on('slack_event', (event: SlackEvent) => this.#received(event));
    this.#client.on('disconnected', () => this.close({ ended: 'transient', text: 'The connection to Slack ended' }));
    this.#client.start().catch((error: unknown) => {
      if (error !== undefined) this.close(endOf(answerOf(error)));
    });
    if (this.#signal.aborted) stop();
    const end = await this.#ended.promise;
    this.#signal.removeEventListener('abort', stop);
    return end;
  }

  /** Ends the connection; the first reason counts. */
  close(end: SocketEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#stopping.abort();
    this.#timer(goodbyeMs, () => this.#finish(end));
    void this.#client.disconnect().then(() => this.#finish(end));
  }

  #finish(end: SocketEnd): void {
    this.#cancelTimer();
    this.#socket?.destroy();
    void this.#agent.destroy();
    this.#ended.resolve(end);
  }

  /** A connector that keeps hold of the socket: only its bytes prove that the peer is alive, and only it ends at once. */
  #createAgent(): Agent {
    const isSecure = this.#deps.config.apiUrl.startsWith('https:');
    const connect = buildConnector({ allowH2: false, timeout: connectMs });
    return new Agent({
      webSocket: { maxPayloadSize: maxFrameBytes },
      connect: (options, done) => {
        if (this.#end !== undefined || (isSecure && options.protocol !== 'https:')) return done(new Error('Refused to connect'), null);
        connect(options, (error, socket) => {
          if (error !== null) return done(error, null);
          this.#socket = socket;
          if (this.#end !== undefined) socket.destroy();
          done(null, socket);
        });
      },
    });
  }

  #heard({ type, reason }: Frame): void {
    this.#handlers.alive();
    if (type === 'hello') {
      this.#expectLife();
      this.#handlers.hello();
    } else if (type === 'disconnect') {
      this.close(
        reason === 'link_disabled'
          ? { ended: 'unauthorized', text: 'Socket mode of the app was switched off: switch it on, then restart the channel' }
          : { ended: 'refresh' },
      );
    }
  }

  #received({ type, body, ack }: SlackEvent): void {
    this.#handlers.envelope({
      type,
      body,
      // Slack sends again what it gets no acknowledgement of.
      acknowledge: () => void ack().catch(() => this.#deps.log.debug({}, 'Slack: an acknowledgement came too late for its connection')),
    });
  }

  #expectLife(bytesBefore = 0, silent = 0): void {
    this.#timer(lifeMs, () => {
      const bytes = this.#socket?.bytesRead ?? 0;
      const nowSilent = bytes === bytesBefore ? silent + 1 : 0;
      if (nowSilent === silentChecks) return this.close({ ended: 'transient', text: 'Slack does not answer any more' });
      if (nowSilent === 0) this.#handlers.alive();
      this.#expectLife(bytes, nowSilent);
    });
  }

  #timer(ms: number, run: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#deps.clock.after(ms, run);
  }
}

function frameOf(text: string): Frame | undefined {
  const parsed = Frame.safeParse(jsonOf(text));
  if (!parsed.success) return undefined;
  const { type, envelope_id: envelopeId, payload } = parsed.data;
  if (type === 'hello' || type === 'disconnect') return parsed.data;
  if (envelopeId == null || ownEvents.has(type)) return undefined;
  if (type !== 'events_api') return parsed.data;
  const event = EventPayload.safeParse(payload);
  return event.success && !ownEvents.has(event.data.event.type) ? parsed.data : undefined;
}

function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Returns why a connection could not be made. */
export function endOf(answer: NotOk): Ended {
  switch (answer.is) {
    case 'limited':
      return { ended: 'transient', text: `Slack limits the rate of connections, for ${Math.ceil(answer.retryAfterMs / 1_000)} s` };
    case 'failed':
      return { ended: 'transient', text: answer.text };
    case 'refused':
      if (answer.error === 'too_many_websockets') return { ended: 'conflict', text: 'Too many clients use the app-level token' };
      return {
        ended: isUnauthorized(answer.error) || answer.error === 'missing_scope' ? 'unauthorized' : 'transient',
        text: refusalText(answer.error),
      };
  }
}
