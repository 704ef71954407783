import net from 'node:net';

/** Somebody on IRC, for tests: says lines and remembers what it hears. */
export interface IrcPerson extends Disposable {
  /** Whole lines as they came, without tags. */
  readonly heard: readonly string[];
  /** Texts that came directly or in a channel, as `nick target text`. */
  readonly messages: readonly string[];
  /** Sends a line as it is. */
  say(line: string): void;
}

/** Connects, registers and joins channels; resolves when that is done. */
export async function joinIrc(
  port: number,
  nick: string,
  { channels = [], password, user = nick }: { readonly channels?: readonly string[]; readonly password?: string; readonly user?: string } = {},
): Promise<IrcPerson> {
  const socket = net.connect({ port, host: '127.0.0.1' });
  socket.setEncoding('utf8');
  const heard: string[] = [];
  const messages: string[] = [];
  const joined = Promise.withResolvers<void>();
  const say = (line: string): void => void socket.write(`${line}\r\n`);
  let left = channels.length;
  let buffer = '';
  socket.on('data', (text: string) => {
    buffer += text;
    const lines = buffer.split('\r\n');
    buffer = lines.pop() ?? '';
    for (const whole of lines) {
      const line = whole.replace(/^@\S+ /, '');
      heard.push(line);
      if (line.startsWith('PING')) say(line.replace('PING', 'PONG'));
      const [, from = '', target = '', said = ''] = /^:([^! ]+)\S* PRIVMSG (\S+) :?(.*)$/.exec(line) ?? [];
      if (from !== '') messages.push(`${from} ${target} ${said}`);
      if (/^:\S+ 001 /.test(line)) {
        for (const channel of channels) say(`JOIN ${channel}`);
        if (left === 0) joined.resolve();
      }
      if (/^:\S+ 366 /.test(line) && (left -= 1) === 0) joined.resolve();
    }
  });
  socket.on('error', joined.reject);
  socket.on('close', () => joined.reject(new Error(`the server ended the connection: ${heard.at(-1)}`)));
  if (password !== undefined) say(`PASS ${password}`);
  say(`NICK ${nick}`);
  say(`USER ${user} 0 * :${nick}`);
  await joined.promise;
  return { heard, messages, say, [Symbol.dispose]: () => void socket.destroy() };
}
