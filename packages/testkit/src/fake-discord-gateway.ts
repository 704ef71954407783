import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import * as z from 'zod';

/** Answer to a resume: the session is unknown (`invalid`), may be tried again (`later`), or the socket is closed with a code. */
export type ResumeAnswer = 'invalid' | 'later' | number;

export interface FakeGatewayOptions {
  readonly token: string;
  readonly heartbeatMs: number;
  /** Address for resumes. */
  readonly resumeUrl: () => string;
  /** Data of READY without those of the session. */
  readonly ready: () => object;
  /** Events after READY. */
  readonly welcome: () => readonly { readonly name: string; readonly data: object }[];
}

/** The gateway of the fake, as tests drive it. */
export interface FakeGateway {
  /** Intents of each identify, and what was resumed, in order. */
  readonly log: readonly string[];
  readonly presences: readonly unknown[];
  /** Number of sockets with a session. */
  readonly connected: number;
  /** Heartbeats that arrived. */
  readonly heartbeats: number;
  /** Codes with which clients closed sockets. */
  readonly closedByClient: readonly number[];
  /** The portal grants the intent to read the content of messages; true at the start. */
  grantMessageContent(granted: boolean): void;
  /** Closes all sockets. */
  close(code: number): void;
  /** Ends all sockets without a closing frame. */
  cut(): void;
  /** Asks all clients to connect again (op 7). */
  askToReconnect(): void;
  /** Forgets all sessions: a resume is refused. */
  forgetSessions(): void;
  /** Answers of the next resumes. */
  onResume(...answers: readonly ResumeAnswer[]): void;
  /** The next identifies are closed with these codes. */
  onIdentify(...codes: readonly number[]): void;
  /** Heartbeats are not acknowledged any more. */
  withholdAcks(withheld: boolean): void;
  /** Events do not come any more, nor to those that resume; heartbeats are acknowledged. */
  withholdEvents(withheld: boolean): void;
  /** Sends a text to all clients. */
  say(text: string): void;
}

interface Session {
  readonly id: string;
  readonly intents: number;
  readonly events: { readonly seq: number; readonly frame: string }[];
  seq: number;
  socket: WebSocket | undefined;
}

const maxEvents = 10_000;
const ops = { dispatch: 0, heartbeat: 1, identify: 2, presence: 3, resume: 6, reconnect: 7, invalid: 9, hello: 10, ack: 11 } as const;
const messageContent = 1 << 15;
const codes = {
  opcode: 4_001,
  decode: 4_002,
  unauthenticated: 4_003,
  token: 4_004,
  twice: 4_005,
  sequence: 4_007,
  version: 4_012,
  intents: 4_013,
  privileged: 4_014,
};

const Frame = z.object({ op: z.int(), d: z.unknown() });
const Identify = z.object({
  token: z.string(),
  intents: z
    .int()
    .min(0)
    .max(2 ** 26),
  properties: z.object({ os: z.string(), browser: z.string(), device: z.string() }),
  presence: z.unknown().optional(),
});
const Resume = z.object({ token: z.string(), session_id: z.string(), seq: z.int() });

/** The gateway: sessions with their events, which a client resumes on another socket. */
export class GatewayServer implements FakeGateway {
  readonly log: string[] = [];
  readonly presences: unknown[] = [];
  readonly closedByClient: number[] = [];
  heartbeats = 0;
  readonly #options: FakeGatewayOptions;
  readonly #server = new WebSocketServer({ noServer: true });
  readonly #sessions = new Map<string, Session>();
  readonly #resumes: ResumeAnswer[] = [];
  readonly #identifies: number[] = [];
  #grantsContent = true;
  #withheld = false;
  #withheldEvents = false;

  constructor(options: FakeGatewayOptions) {
    this.#options = options;
  }

  get connected(): number {
    return [...this.#sessions.values()].filter(({ socket }) => socket !== undefined).length;
  }

  grantMessageContent(granted: boolean): void {
    this.#grantsContent = granted;
  }

  close(code: number): void {
    for (const socket of this.#server.clients) socket.close(code);
  }

  cut(): void {
    for (const socket of this.#server.clients) socket.terminate();
  }

  askToReconnect(): void {
    this.say(JSON.stringify({ op: ops.reconnect, d: null }));
  }

  forgetSessions(): void {
    this.#sessions.clear();
  }

  onResume(...answers: readonly ResumeAnswer[]): void {
    this.#resumes.push(...answers);
  }

  onIdentify(...closed: readonly number[]): void {
    this.#identifies.push(...closed);
  }

  withholdAcks(withheld: boolean): void {
    this.#withheld = withheld;
  }

  withholdEvents(withheld: boolean): void {
    this.#withheldEvents = withheld;
  }

  say(text: string): void {
    for (const socket of this.#server.clients) socket.send(text);
  }

  /** Sends an event to the sessions with one of these intents, also later to those that resume. */
  dispatch(name: string, intent: number, dataFor: (seesContent: boolean) => object): void {
    if (this.#withheldEvents) return;
    for (const session of this.#sessions.values())
      if (intent === 0 || (session.intents & intent) !== 0) this.#send(session, name, dataFor((session.intents & messageContent) !== 0));
  }

  accept(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    this.#server.handleUpgrade(request, stream, head, (socket) => this.#begin(socket, new URL(request.url ?? '/', 'ws://x').searchParams));
  }

  end(): void {
    this.cut();
    this.#server.close();
  }

  #begin(socket: WebSocket, query: URLSearchParams): void {
    if (query.get('v') !== '10' || query.get('encoding') !== 'json' || query.has('compress')) return socket.close(codes.version);
    let session: Session | undefined;
    socket.on('error', () => {});
    socket.on('message', (data: Buffer) => {
      const frame = Frame.safeParse(parse(data.toString('utf8'))).data;
      if (frame === undefined) return socket.close(codes.decode);
      session = this.#handle(socket, session, frame);
    });
    socket.on('close', (code) => {
      this.closedByClient.push(code);
      if (session?.socket !== socket) return;
      session.socket = undefined;
      // A client that closes so ends its session.
      if (code === 1_000 || code === 1_001) this.#sessions.delete(session.id);
    });
    socket.send(JSON.stringify({ op: ops.hello, d: { heartbeat_interval: this.#options.heartbeatMs } }));
  }

  #handle(socket: WebSocket, session: Session | undefined, { op, d }: z.output<typeof Frame>): Session | undefined {
    switch (op) {
      case ops.heartbeat:
        this.heartbeats += 1;
        if (d !== null && typeof d !== 'number') socket.close(codes.decode);
        else if (!this.#withheld) socket.send(JSON.stringify({ op: ops.ack }));
        return session;
      case ops.identify:
        return session === undefined ? this.#identify(socket, d) : end(socket, codes.twice);
      case ops.resume:
        return session === undefined ? this.#resume(socket, d) : end(socket, codes.twice);
      case ops.presence:
        if (session === undefined) socket.close(codes.unauthenticated);
        else this.presences.push(d);
        return session;
      default:
        socket.close(codes.opcode);
        return session;
    }
  }

  #identify(socket: WebSocket, data: unknown): Session | undefined {
    const identify = Identify.safeParse(data).data;
    const scripted = this.#identifies.shift();
    if (identify === undefined) return end(socket, codes.decode);
    if (scripted !== undefined) return end(socket, scripted);
    if (identify.token !== this.#options.token) return end(socket, codes.token);
    if ((identify.intents & messageContent) !== 0 && !this.#grantsContent) return end(socket, codes.privileged);
    const session: Session = { id: randomBytes(16).toString('hex'), intents: identify.intents, events: [], seq: 0, socket };
    this.#sessions.set(session.id, session);
    this.log.push(`identify ${identify.intents}`);
    if (identify.presence != null) this.presences.push(identify.presence);
    const own = { v: 10, session_id: session.id, resume_gateway_url: this.#options.resumeUrl(), shard: [0, 1] };
    this.#send(session, 'READY', { ...this.#options.ready(), ...own });
    for (const { name, data: welcome } of this.#options.welcome()) this.#send(session, name, welcome);
    return session;
  }

  #resume(socket: WebSocket, data: unknown): Session | undefined {
    const resume = Resume.safeParse(data).data;
    if (resume === undefined) return end(socket, codes.decode);
    if (resume.token !== this.#options.token) return end(socket, codes.token);
    this.log.push(`resume ${resume.seq}`);
    const scripted = this.#resumes.shift();
    if (typeof scripted === 'number') return end(socket, scripted);
    const session = this.#sessions.get(resume.session_id);
    if (scripted !== undefined || session === undefined) {
      socket.send(JSON.stringify({ op: ops.invalid, d: scripted === 'later' }));
      return undefined;
    }
    if (resume.seq > session.seq) return end(socket, codes.sequence);
    session.socket?.terminate();
    session.socket = socket;
    for (const { seq, frame } of session.events) if (seq > resume.seq) socket.send(frame);
    this.#send(session, 'RESUMED', {});
    return session;
  }

  #send(session: Session, name: string, data: object): void {
    session.seq += 1;
    const frame = JSON.stringify({ op: ops.dispatch, t: name, s: session.seq, d: data });
    session.events.push({ seq: session.seq, frame });
    if (session.events.length > maxEvents) session.events.shift();
    session.socket?.send(frame);
  }
}

/** A client that is closed has no session. */
function end(socket: WebSocket, code: number): undefined {
  socket.close(code);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
