import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { isIP, Socket } from 'node:net';

/** What this process dials and looks up from now on. Nothing outside of this machine is really dialled. */
export interface DialWatch {
  /** `address:port` of each attempt to connect, in order. */
  readonly dialled: readonly string[];
  /** Names that the system was asked to resolve. */
  readonly lookedUp: readonly string[];
}

/** Replaces the connect of all sockets and the resolver of the system. */
export function watchDials(): DialWatch {
  const dialled: string[] = [];
  const lookedUp: string[] = [];
  const connect = Reflect.get(Socket.prototype, 'connect');
  Reflect.set(Socket.prototype, 'connect', function (this: Socket, ...args: unknown[]): unknown {
    // `net.connect` passes its normalised arguments as one list.
    const [first] = Array.isArray(args[0]) ? (args[0] as unknown[]) : args;
    const target = typeof first === 'object' && first !== null ? first : {};
    const port: unknown = Reflect.get(target, 'port');
    if (port === undefined) return Reflect.apply(connect, this, args);
    const host = String(Reflect.get(target, 'host') ?? 'localhost');
    dialled.push(`${host}:${String(port)}`);
    if (/^(?:127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+|localhost)$/.test(host)) return Reflect.apply(connect, this, args);
    this.destroy(new Error(`${host} is not on this machine`));
    return this;
  });
  const refuse = (name: unknown): Error => {
    lookedUp.push(String(name));
    return new Error('the resolver of the system is out of bounds');
  };
  const lookup = dns.lookup;
  Reflect.set(dns, 'lookup', (name: unknown, ...rest: unknown[]): unknown => {
    if (isIP(String(name)) !== 0) return Reflect.apply(lookup, dns, [name, ...rest]);
    const done = rest.at(-1);
    const error = refuse(name);
    if (typeof done === 'function') process.nextTick(() => Reflect.apply(done, undefined, [error]));
    return undefined;
  });
  Reflect.set(dns.promises, 'lookup', async (name: unknown) => Promise.reject(refuse(name)));
  syncBuiltinESMExports();
  return { dialled, lookedUp };
}
