import net from 'node:net';
import tls from 'node:tls';
import type { AdapterDeps, Ended, ReceivedMessage, SendResult, Sink } from '../port.ts';
import type { IrcConfig } from './irc.ts';
import { foldingOf, formatLine, type Line, longestLine, parseLine, parseSource } from './line.ts';

const pingMs = 30_000;
const pongMs = 15_000;
const connectMs = 30_000;
const goodbyeMs = 1_000;
const wantedCaps = ['message-tags', 'server-time', 'account-tag', 'echo-message', 'labeled-response', 'batch'];
/** Messages not yet stored; beyond, the socket is not read. */
const maxWaiting = 256;
/** Tries for a nick: the same one first, after a pause, then others. */
const maxNicks = 6;
const sameNick = 3;
const sameNickMs = 1_000;

/** Answers that refuse a message, by their number. */
const refusals: Readonly<Record<string, string>> = {
  '401': 'no_such_target',
  '403': 'no_such_channel',
  '404': 'cannot_send',
  '407': 'too_many_targets',
  '411': 'no_target',
  '412': 'no_text',
  '477': 'needs_registration',
  '531': 'not_accepted',
};

interface Pending {
  readonly target: string;
  readonly label: string;
  readonly isLabelled: boolean;
  readonly settle: (result: SendResult) => void;
}

/** One connection, from its dial to its end. */
export class IrcConnection {
  readonly #deps: AdapterDeps<IrcConfig>;
  readonly #sink: Sink;
  readonly #ended = Promise.withResolvers<Ended>();
  readonly #caps = new Set<string>();
  readonly #offered = new Set<string>();
  readonly #pending = new Map<string, Pending>();
  readonly #waiting: ReceivedMessage[] = [];
  #taking = false;
  #socket: net.Socket | undefined;
  #buffer = '';
  #nick: string;
  #nicksTried = 1;
  #isWelcome = false;
  #isOver = false;
  #fold = foldingOf('rfc1459');
  #cancelTimer = () => {};

  constructor(deps: AdapterDeps<IrcConfig>, sink: Sink) {
    this.#deps = deps;
    this.#sink = sink;
    this.#nick = deps.config.nick;
  }

  async run(signal: AbortSignal): Promise<Ended> {
    const stop = () => this.#end({ ended: 'stopped', text: 'Stopped' });
    if (signal.aborted) return { ended: 'stopped', text: 'Stopped' };
    signal.addEventListener('abort', stop, { once: true });
    this.#dial();
    try {
      return await this.#ended.promise;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /** Sends one line; resolves when the server has confirmed or refused it, or the connection ended. */
  say(target: string, text: string, label: string, signal: AbortSignal): Promise<SendResult> {
    const socket = this.#socket;
    if (socket === undefined || !this.#isWelcome || this.#isOver) return Promise.resolve({ is: 'notSent', text: 'The server is not connected' });
    const isLabelled = this.#caps.has('labeled-response') && this.#caps.has('echo-message');
    const { promise, resolve } = Promise.withResolvers<SendResult>();
    const late = () => settle({ is: 'ambiguous', text: 'The server had not confirmed it when the channel stopped' });
    const settle = (result: SendResult) => {
      this.#pending.delete(label);
      signal.removeEventListener('abort', late);
      resolve(result);
    };
    this.#pending.set(label, { target: this.#fold(target), label, isLabelled, settle });
    signal.addEventListener('abort', late, { once: true });
    if (isLabelled) this.#write(formatLine('PRIVMSG', [target, text], { label }));
    // A server without labels answers in order: its answer to the ping comes after a refusal of the message.
    else this.#write(`${formatLine('PRIVMSG', [target, text])}${formatLine('PING', [label])}`);
    return promise;
  }

  #dial(): void {
    const { host, port, tls: isTls } = this.#deps.config;
    const socket = isTls ? tls.connect({ host, port, servername: net.isIP(host) === 0 ? host : '' }) : net.connect({ host, port });
    this.#socket = socket;
    this.#timer(connectMs, () => this.#end({ ended: 'transient', text: `No connection to ${host}:${port} within ${connectMs / 1_000} s` }));
    socket.setNoDelay(true);
    socket.setEncoding('utf8');
    socket.once(isTls ? 'secureConnect' : 'connect', () => this.#register());
    socket.on('data', (text: string) => this.#read(text));
    socket.on('error', (error: NodeJS.ErrnoException) => this.#end({ ended: 'transient', text: `${host}:${port}: ${error.code ?? error.message}` }));
    socket.on('close', () => this.#end({ ended: 'transient', text: 'The server closed the connection' }));
  }

  #register(): void {
    const { serverPassword, username, realName } = this.#deps.config;
    this.#write(formatLine('CAP', ['LS', '302']));
    if (serverPassword !== undefined) this.#write(formatLine('PASS', [serverPassword]));
    this.#write(formatLine('NICK', [this.#nick]));
    this.#write(formatLine('USER', [username ?? this.#nick, '0', '*', realName ?? 'Gatehouse']));
  }

  #read(text: string): void {
    this.#buffer += text;
    for (let end = this.#buffer.indexOf('\n'); end !== -1; end = this.#buffer.indexOf('\n')) {
      const line = parseLine(this.#buffer.slice(0, end).replace(/\r$/, ''));
      this.#buffer = this.#buffer.slice(end + 1);
      if (line !== undefined && !this.#isOver) this.#heard(line);
    }
    if (this.#buffer.length > longestLine) this.#end({ ended: 'transient', text: 'The server sent a line that is too long' });
  }

  #heard(line: Line): void {
    this.#sink.alive();
    if (this.#isWelcome) this.#expectLife();
    const { command, params, tags } = line;
    const label = tags.get('label');
    if (label !== undefined && refusals[command] !== undefined) return this.#refused(label, line);
    switch (command) {
      case 'PING':
        return this.#write(formatLine('PONG', [params.at(-1) ?? '']));
      case 'PONG':
        return this.#pending.get(params.at(-1) ?? '')?.settle({ is: 'sent' });
      case 'CAP':
        return this.#negotiate(params);
      case 'AUTHENTICATE':
        return this.#authenticate(params[0]);
      case 'ERROR':
        return this.#end({ ended: endOfError(params[0] ?? ''), text: `The server ended the connection: ${params[0] ?? ''}` });
      case 'KILL':
        return this.#end({ ended: 'conflict', text: `The connection was killed: ${params.at(-1) ?? ''}` });
      case 'NICK':
        if (this.#isOwn(line)) this.#nick = params[0] ?? this.#nick;
        return;
      case 'PRIVMSG':
        return this.#message(line);
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
        return this.#end({ ended: 'unauthorized', text: `The server does not accept the nick ${this.#nick}` });
      case '903':
        return this.#write(formatLine('CAP', ['END']));
      case '902':
      case '904':
      case '905':
      case '906':
        return this.#end({ ended: 'unauthorized', text: `The login failed: ${params.at(-1) ?? ''}` });
      default: {
        if (refusals[command] === undefined) return;
        const target = this.#fold(params[1] ?? '');
        for (const pending of this.#pending.values())
          if (!pending.isLabelled && pending.target === target) return this.#refused(pending.label, { command, params });
      }
    }
  }

  #refused(label: string, { command, params }: Pick<Line, 'command' | 'params'>): void {
    this.#pending.get(label)?.settle({ is: 'rejected', kind: refusals[command] ?? command, text: params.at(-1) ?? command });
  }

  #negotiate(params: readonly string[]): void {
    const [, what, ...rest] = params;
    const names = (rest.at(-1) ?? '').split(' ').filter((name) => name !== '');
    switch (what) {
      case 'LS': {
        for (const name of names) this.#offered.add(name.split('=')[0] ?? '');
        if (rest[0] === '*') return;
        const { saslUser } = this.#deps.config;
        const wanted = [...wantedCaps, ...(saslUser === undefined ? [] : ['sasl'])].filter((name) => this.#offered.has(name));
        if (saslUser !== undefined && !this.#offered.has('sasl'))
          return this.#end({ ended: 'unauthorized', text: 'The server offers no login (SASL)' });
        return this.#write(wanted.length === 0 ? formatLine('CAP', ['END']) : formatLine('CAP', ['REQ', wanted.join(' ')]));
      }
      case 'ACK':
        for (const name of names) this.#caps.add(name);
        return this.#write(this.#caps.has('sasl') ? formatLine('AUTHENTICATE', ['PLAIN']) : formatLine('CAP', ['END']));
      case 'NAK':
        return this.#write(formatLine('CAP', ['END']));
      default:
    }
  }

  #authenticate(what: string | undefined): void {
    const { saslUser = '', saslPassword = '' } = this.#deps.config;
    if (what === '+') this.#write(formatLine('AUTHENTICATE', [Buffer.from(`\0${saslUser}\0${saslPassword}`).toString('base64')]));
  }

  #otherNick(): void {
    this.#nicksTried += 1;
    if (this.#nicksTried > maxNicks) return this.#end({ ended: 'conflict', text: `The nick ${this.#deps.config.nick} is in use` });
    // A connection that has just ended may still have it.
    if (this.#nicksTried <= sameNick) return void this.#deps.clock.after(sameNickMs, () => this.#write(formatLine('NICK', [this.#nick])));
    this.#nick = `${this.#nick}_`;
    this.#write(formatLine('NICK', [this.#nick]));
  }

  #welcome(nick: string): void {
    this.#nick = nick;
    this.#isWelcome = true;
    for (const channel of this.#deps.config.channels) this.#write(formatLine('JOIN', [channel]));
    this.#expectLife();
    this.#sink.connected(nick);
  }

  #isOwn = ({ source }: Line): boolean => this.#fold(parseSource(source).nick) === this.#fold(this.#nick);

  #message(line: Line): void {
    const { params, source, tags } = line;
    const [target = '', said = ''] = params;
    if (this.#isOwn(line)) {
      const id = tags.get('msgid');
      return this.#pending.get(tags.get('label') ?? '')?.settle({ is: 'sent', ...(id !== undefined && { platformId: id }) });
    }
    const text = textOf(said, parseSource(source).nick);
    if (text === undefined) return;
    const isDirect = this.#fold(target) === this.#fold(this.#nick);
    const { nick, user, host } = parseSource(source);
    const account = tags.get('account');
    const mention = mentionOf(text, this.#nick);
    const sentAtMs = Date.parse(tags.get('time') ?? '');
    this.#waiting.push({
      eventKey: tags.get('msgid'),
      conversationId: isDirect ? nick : this.#fold(target),
      conversationKind: isDirect ? 'direct' : 'shared',
      senderId: account === undefined || account === '*' ? this.#fold(`${nick}!${user}@${host}`) : `account:${this.#fold(account)}`,
      senderName: nick,
      isBot: tags.has('bot'),
      text: mention.text,
      mentionsUs: mention.isMentioned,
      sentAtMs: Number.isNaN(sentAtMs) ? this.#deps.clock.now() : sentAtMs,
    });
    if (this.#waiting.length >= maxWaiting) this.#socket?.pause();
    void this.#take();
  }

  /** Passes messages on in their order; IRC sends nothing again, so that one that cannot be stored now is tried until it can. */
  async #take(): Promise<void> {
    if (this.#taking) return;
    this.#taking = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, 64);
      try {
        await this.#sink.take(batch);
        this.#waiting.splice(0, batch.length);
        this.#socket?.resume();
      } catch (error) {
        this.#deps.log.warn({ err: error }, 'Failed to store messages of IRC; they are tried again');
        if (this.#isOver) break;
        await new Promise<void>((resolve) => this.#deps.clock.after(1_000, resolve));
      }
    }
    this.#taking = false;
  }

  #expectLife(): void {
    const { pingMs: quietMs = pingMs, pongMs: answerMs = pongMs } = this.#deps.config;
    this.#timer(quietMs, () => {
      this.#write(formatLine('PING', ['life']));
      // Another one had it.
      if (this.#nick !== this.#deps.config.nick) this.#write(formatLine('NICK', [this.#deps.config.nick]));
      this.#timer(answerMs, () => this.#end({ ended: 'transient', text: 'The server does not answer any more' }));
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
    for (const pending of this.#pending.values()) pending.settle({ is: 'ambiguous', text: 'The connection ended before the server confirmed it' });
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
  return /password|access denied|unauthori[sz]ed|banned|[kgz]-lined/i.test(text) ? 'unauthorized' : 'transient';
}

/** Returns what a message says: an action becomes text, every other request of a client to a client (CTCP) is ignored. */
function textOf(said: string, nick: string): string | undefined {
  if (!said.startsWith('\x01')) return said;
  const action = /^\x01ACTION ([^\x01]*)\x01?$/.exec(said)?.[1];
  return action === undefined ? undefined : `* ${nick} ${action}`;
}

/** Returns whether a text names us, and the text without our name at its beginning. */
function mentionOf(text: string, nick: string): { readonly isMentioned: boolean; readonly text: string } {
  const name = RegExp.escape(nick);
  const addressed = new RegExp(`^@?${name}(?:[:,]\\s*|\\s+|$)`, 'i').exec(text);
  if (addressed !== null) return { isMentioned: true, text: text.slice(addressed[0].length) };
  return { isMentioned: new RegExp(`(?:^|[^\\w-])@?${name}(?:$|[^\\w-])`, 'i').test(text), text };
}
