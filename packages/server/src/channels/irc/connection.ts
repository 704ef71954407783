import { readFile } from 'node:fs/promises';
import net from 'node:net';
import tls from 'node:tls';
import type { AdapterDeps, Ended, SendResult, Sink } from '../port.ts';
import { type ActName, type ActResult, Acts, commandOf } from './acts.ts';
import { Intake } from './intake.ts';
import type { IrcConfig } from './irc.ts';
import { foldingOf, formatLine, type Line, longestLine, parseLine, parseSource } from './line.ts';
import { messageOf } from './message.ts';
import { type Holder, Identities } from './identities.ts';
import { isRefusal, Sends } from './sends.ts';

const defaultPingMs = 30_000;
const defaultPongMs = 15_000;
const connectMs = 30_000;
const goodbyeMs = 1_000;
const wantedCaps = ['message-tags', 'server-time', 'account-tag', 'echo-message', 'labeled-response', 'batch'];
/** Tries for a nick: the same one first, after a pause, then others. */
const maxNicks = 6;
const sameNick = 3;
const sameNickMs = 1_000;
/** A login is sent in parts of this length; a shorter one is the last. */
const loginPart = 400;

/** One connection, from its dial to its end. */
export class IrcConnection {
  readonly #deps: AdapterDeps<IrcConfig>;
  readonly #sink: Sink;
  readonly #ended = Promise.withResolvers<Ended>();
  readonly #signal: AbortSignal;
  readonly #intake: Intake;
  readonly #sends: Sends;
  readonly #acts: Acts;
  readonly #identities: Identities;
  readonly #caps = new Set<string>();
  readonly #offered = new Set<string>();
  readonly #pingMs: number;
  readonly #pongMs: number;
  #socket: net.Socket | undefined;
  #buffer = '';
  #nick: string;
  #nicksTried = 1;
  #isLoggedIn = false;
  #isWelcome = false;
  #isOver = false;
  #fold = foldingOf('rfc1459');
  #cancelTimer = () => {};

  constructor(deps: AdapterDeps<IrcConfig>, signal: AbortSignal, sink: Sink) {
    const { nick, pingMs = defaultPingMs, pongMs = defaultPongMs } = deps.config;
    this.#deps = deps;
    this.#sink = sink;
    this.#signal = signal;
    this.#nick = nick;
    this.#pingMs = pingMs;
    this.#pongMs = pongMs;
    this.#intake = new Intake(deps, sink, signal, () => this.#readOn());
    this.#sends = new Sends(deps.clock, pingMs + pongMs);
    this.#acts = new Acts(deps.clock, pingMs + pongMs);
    this.#identities = new Identities(deps.clock, pingMs + pongMs);
  }

  /** Resolves when the connection has ended and what came over it is stored. */
  async run(): Promise<Ended> {
    const stop = () => this.#end({ ended: 'stopped', text: 'Stopped' });
    if (this.#signal.aborted) return { ended: 'stopped', text: 'Stopped' };
    this.#signal.addEventListener('abort', stop, { once: true });
    void this.#dial();
    try {
      const ended = await this.#ended.promise;
      await this.#intake.settled();
      return ended;
    } finally {
      this.#signal.removeEventListener('abort', stop);
    }
  }

  /** Sends one line; resolves when the server has confirmed or refused it, or the connection ended. */
  say(target: string, text: string, label: string, signal: AbortSignal): Promise<SendResult> {
    if (this.#socket === undefined || !this.#isWelcome || this.#isOver)
      return Promise.resolve({ is: 'notSent', text: 'The server is not connected' });
    if (signal.aborted) return Promise.resolve({ is: 'notSent', text: 'The channel stopped' });
    const isLabelled = this.#caps.has('labeled-response') && this.#caps.has('echo-message');
    const result = this.#sends.expect(label, this.#fold(target), isLabelled, signal);
    if (isLabelled) this.#write(formatLine('PRIVMSG', [target, text], { label }));
    // A server without labels answers in order: its answer to the ping comes after a refusal of the message.
    else this.#write(`${formatLine('PRIVMSG', [target, text])}${formatLine('PING', [label])}`);
    return result;
  }

  /** Returns who has a nick now; `unclear` when the server does not say so. */
  async holderOf(nick: string): Promise<Holder | 'unclear'> {
    if (this.#socket === undefined || !this.#isWelcome || this.#isOver) return 'unclear';
    return this.#identities.holderOf(nick, this.#fold(nick), (line) => this.#write(line));
  }

  /** Carries out an action on a channel; resolves when the server has answered. */
  act(name: ActName, channel: string, params: Readonly<Record<string, unknown>>, token: string, signal: AbortSignal): Promise<ActResult> {
    if (this.#socket === undefined || !this.#isWelcome || this.#isOver || signal.aborted)
      return Promise.resolve({ is: 'failed', kind: 'unavailable', text: 'The server is not connected' });
    const result = this.#acts.expect(token, { name, channel, folded: this.#fold(channel) }, signal);
    const [command, words] = commandOf(name, channel, params);
    this.#write(`${formatLine(command, words)}${formatLine('PING', [token])}`);
    return result;
  }

  async #dial(): Promise<void> {
    const { host, port, tls: isTls, tlsCaPath } = this.#deps.config;
    const failed = (error: NodeJS.ErrnoException) => this.#end({ ended: 'transient', text: `${host}:${port}: ${error.code ?? error.message}` });
    this.#timer(connectMs, () => this.#end({ ended: 'transient', text: `No connection to ${host}:${port} within ${connectMs / 1_000} s` }));
    let ca: Buffer | undefined;
    try {
      if (isTls && tlsCaPath !== undefined) ca = await readFile(tlsCaPath);
    } catch (error) {
      return failed(error as NodeJS.ErrnoException);
    }
    if (this.#isOver) return;
    const socket = isTls
      ? tls.connect({ host, port, servername: net.isIP(host) === 0 ? host : '', ...(ca !== undefined && { ca }) })
      : net.connect({ host, port });
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setEncoding('utf8');
    socket.once(isTls ? 'secureConnect' : 'connect', () => this.#register());
    socket.on('data', (text: string) => {
      this.#buffer += text;
      this.#read();
    });
    socket.on('error', failed);
    socket.on('close', () => this.#end({ ended: 'transient', text: 'The server closed the connection' }));
  }

  #register(): void {
    const { serverPassword, username, realName } = this.#deps.config;
    this.#write(formatLine('CAP', ['LS', '302']));
    if (serverPassword !== undefined) this.#write(formatLine('PASS', [serverPassword]));
    this.#write(formatLine('NICK', [this.#nick]));
    this.#write(formatLine('USER', [username ?? this.#nick, '0', '*', realName ?? 'Gatehouse']));
  }

  /** Handles the lines that have come, until too many messages wait. */
  #read(): void {
    let start = 0;
    let end = this.#buffer.indexOf('\n');
    for (; end !== -1 && !this.#isOver && !this.#intake.isFull; end = this.#buffer.indexOf('\n', start)) {
      const text = this.#buffer.slice(start, end).replace(/\r$/, '');
      start = end + 1;
      const line = text.length > longestLine ? this.#endAtLongLine() : parseLine(text);
      if (line !== undefined) this.#heard(line);
    }
    this.#buffer = this.#buffer.slice(start);
    if (this.#intake.isFull) {
      // Nothing is heard meanwhile: no silence proves anything.
      this.#socket?.pause();
      this.#cancelTimer();
    } else if (end === -1 && this.#buffer.length > longestLine) this.#endAtLongLine();
  }

  #readOn(): void {
    if (this.#socket?.isPaused() !== true || this.#isOver || this.#intake.isFull) return;
    this.#expectLife();
    this.#read();
    if (!this.#intake.isFull) this.#socket.resume();
  }

  #endAtLongLine(): undefined {
    this.#end({ ended: 'transient', text: 'The server sent a line that is too long' });
  }

  #heard(line: Line): void {
    this.#sink.alive();
    if (this.#isWelcome) this.#expectLife();
    const { command, params, source } = line;
    const isOwn = this.#fold(parseSource(source).nick) === this.#fold(this.#nick);
    if (this.#identities.takes(line, this.#fold)) return;
    if (this.#acts.takes(line, isOwn, this.#fold, (channel) => this.#sends.isSending(channel))) return;
    if (this.#sends.takes(line, isOwn && command === 'PRIVMSG', this.#fold)) return;
    switch (command) {
      case 'PING':
        return this.#write(formatLine('PONG', [params.at(-1) ?? '']));
      case 'PONG':
        return this.#sends.ponged(params.at(-1) ?? '');
      case 'CAP':
        return this.#negotiate(params);
      case 'AUTHENTICATE':
        return this.#authenticate(params[0]);
      case 'ERROR':
        return this.#end({ ended: endOfError(params[0] ?? ''), text: `The server ended the connection: ${params[0] ?? ''}` });
      case 'KILL':
        return this.#end({ ended: 'conflict', text: `The connection was killed: ${params.at(-1) ?? ''}` });
      case 'KICK':
        if (this.#fold(params[1] ?? '') === this.#fold(this.#nick))
          this.#deps.log.warn({ channel: params[0], code: command, reason: params.at(-1) }, 'IRC: thrown out of a channel');
        return;
      case 'QUIT':
        return this.#identities.forget(this.#fold(parseSource(source).nick));
      case 'NICK':
        this.#identities.forget(this.#fold(parseSource(source).nick));
        this.#identities.forget(this.#fold(params[0] ?? ''));
        if (isOwn) this.#nick = params[0] ?? this.#nick;
        return;
      case 'PRIVMSG': {
        const message = isOwn ? undefined : messageOf(line, { nick: this.#nick, fold: this.#fold, nowMs: this.#deps.clock.now() });
        return message && this.#intake.add(message);
      }
      default:
        return this.#numeric(line);
    }
  }

  #numeric({ command, params }: Line): void {
    switch (command) {
      case '001':
        return this.#welcome(params[0] ?? this.#nick);
      case '005':
        for (const param of params) if (param.startsWith('CASEMAPPING=')) this.#fold = foldingOf(param.slice('CASEMAPPING='.length));
        return;
      case '433':
      case '436':
        return this.#isWelcome ? undefined : this.#otherNick();
      case '464':
      case '465':
        return this.#end({ ended: 'unauthorized', text: params.at(-1) ?? 'The server refuses the connection' });
      case '432':
        if (this.#isWelcome) return;
        // A longer nick may be too long.
        return this.#nick === this.#deps.config.nick
          ? this.#end({ ended: 'unauthorized', text: `The server does not accept the nick ${this.#nick}` })
          : this.#nickIsUsed();
      case '903':
        this.#isLoggedIn = true;
        return this.#write(formatLine('CAP', ['END']));
      case '902':
      case '904':
      case '905':
      case '906':
        return this.#end({ ended: 'unauthorized', text: `The login failed: ${params.at(-1) ?? ''}` });
      default: {
        const channel = this.#fold(params[1] ?? '');
        if (isRefusal(command) && this.#deps.config.channels.some((one) => this.#fold(one) === channel))
          this.#deps.log.warn({ channel: params[1], code: command, reason: params.at(-1) }, 'IRC: failed to join a channel');
      }
    }
  }

  #negotiate(params: readonly string[]): void {
    const [, what, ...rest] = params;
    const names = (rest.at(-1) ?? '').split(' ').filter((name) => name !== '');
    switch (what) {
      case 'LS': {
        for (const name of names) this.#offered.add(name.split('=')[0] ?? '');
        if (rest[0] === '*') return;
        const { sasl } = this.#deps.config;
        const wanted = [...wantedCaps, ...(sasl === undefined ? [] : ['sasl'])].filter((name) => this.#offered.has(name));
        if (sasl !== undefined && !this.#offered.has('sasl')) return this.#end({ ended: 'unauthorized', text: 'The server offers no login (SASL)' });
        return this.#write(wanted.length === 0 ? formatLine('CAP', ['END']) : formatLine('CAP', ['REQ', wanted.join(' ')]));
      }
      case 'ACK':
        for (const name of names) this.#caps.add(name);
        return this.#write(this.#caps.has('sasl') ? formatLine('AUTHENTICATE', ['PLAIN']) : formatLine('CAP', ['END']));
      case 'NAK':
        return this.#write(formatLine('CAP', ['END']));
      case 'DEL':
        for (const name of names) this.#caps.delete(name);
        return;
      default:
    }
  }

  #authenticate(what: string | undefined): void {
    const { user = '', password = '' } = this.#deps.config.sasl ?? {};
    if (what !== '+') return;
    const login = Buffer.from(`\0${user}\0${password}`).toString('base64');
    for (let at = 0; at <= login.length; at += loginPart) this.#write(formatLine('AUTHENTICATE', [login.slice(at, at + loginPart) || '+']));
  }

  #otherNick(): void {
    this.#nicksTried += 1;
    if (this.#nicksTried > maxNicks) return this.#nickIsUsed();
    // A connection that has just ended may still have it.
    if (this.#nicksTried <= sameNick) return void this.#deps.clock.after(sameNickMs, () => this.#write(formatLine('NICK', [this.#nick])));
    this.#nick = `${this.#nick}_`;
    this.#write(formatLine('NICK', [this.#nick]));
  }

  #nickIsUsed(): void {
    this.#end({ ended: 'conflict', text: `The nick ${this.#deps.config.nick} is in use` });
  }

  #welcome(nick: string): void {
    if (this.#deps.config.sasl !== undefined && !this.#isLoggedIn)
      return this.#end({ ended: 'unauthorized', text: 'The server did not do the login (SASL)' });
    this.#nick = nick;
    this.#isWelcome = true;
    for (const channel of this.#deps.config.channels) this.#write(formatLine('JOIN', [channel]));
    this.#expectLife();
    this.#sink.connected(nick);
  }

  #expectLife(): void {
    this.#timer(this.#pingMs, () => {
      this.#write(formatLine('PING', ['life']));
      // Another one had it.
      if (this.#nick !== this.#deps.config.nick) this.#write(formatLine('NICK', [this.#deps.config.nick]));
      this.#timer(this.#pongMs, () => this.#end({ ended: 'transient', text: 'The server does not answer any more' }));
    });
  }

  #timer(ms: number, run: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#deps.clock.after(ms, run);
  }

  #write(text: string): void {
    if (!this.#isOver) this.#socket?.write(text);
  }

  #end(ended: Ended): void {
    if (this.#isOver) return;
    this.#cancelTimer();
    if (ended.ended === 'stopped') this.#write(formatLine('QUIT', ['Stopping']));
    this.#isOver = true;
    this.#sends.end();
    this.#acts.end();
    this.#identities.end();
    const socket = this.#socket;
    const done = () => {
      cancel();
      socket?.destroy();
      this.#ended.resolve(ended);
    };
    // The nick is free for the next connection once the server has closed this one; it is not waited for longer than that takes.
    const cancel = this.#deps.clock.after(ended.ended === 'stopped' ? goodbyeMs : 0, done);
    if (ended.ended === 'stopped' && socket?.readyState === 'open') socket.once('close', done).end();
    else done();
  }
}

/** Returns why a server ends a connection: only its text says so. */
function endOfError(text: string): Ended['ended'] {
  if (/ghost|nick(name)? coll|killed/i.test(text)) return 'conflict';
  return /password|access denied|(?:un|not )authori[sz]ed|banned|[kgz]-lined/i.test(text) ? 'unauthorized' : 'transient';
}
