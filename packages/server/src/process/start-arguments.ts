import { homedir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Environment } from '../kernel/config/references.ts';
import type { KeyPlace } from '../kernel/install-key.ts';

export type StartArguments =
  | { readonly kind: 'start'; readonly home: string; readonly port: number | undefined; readonly host: string | undefined }
  | { readonly kind: 'backup'; readonly home: string; readonly file: string | undefined }
  | { readonly kind: 'restore'; readonly home: string; readonly file: string }
  | { readonly kind: 'storage-import'; readonly home: string; readonly to: string | undefined }
  | { readonly kind: 'install-key'; readonly home: string; readonly to: KeyPlace | undefined }
  | { readonly kind: 'doctor'; readonly home: string }
  | { readonly kind: 'config-check'; readonly home: string; readonly file: string | undefined }
  | { readonly kind: 'help' | 'version' }
  | { readonly kind: 'wrong'; readonly message: string };

export const usage = `Usage: gatehouse start [--home DIR] [--port N] [--host ADDRESS]

  --home DIR      home folder: configuration, token, data (default: $GATEHOUSE_HOME or ~/.gatehouse)
  --port N        port to listen on, 0 for a free one (default: $GATEHOUSE_PORT or gateway.port)
  --host ADDRESS  address to listen on (default: gateway.host)
  --version       print the version
  --help          print this
`;

/** Parses the command line, with the home folder that it and the environment name. */
export function parseArguments(argv: readonly string[], env: Environment, workingDir: string): StartArguments {
  let values: {
    home?: string;
    port?: string;
    host?: string;
    backup?: boolean;
    restore?: string;
    'storage-import'?: boolean;
    to?: string;
    'install-key'?: string;
    doctor?: boolean;
    'config-check'?: boolean;
    help?: boolean;
    version?: boolean;
  };
  let positionals: string[];
  try {
    ({ values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        home: { type: 'string' },
        port: { type: 'string' },
        host: { type: 'string' },
        backup: { type: 'boolean' },
        restore: { type: 'string' },
        'storage-import': { type: 'boolean' },
        to: { type: 'string' },
        'install-key': { type: 'string' },
        doctor: { type: 'boolean' },
        'config-check': { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'v' },
      },
    }));
  } catch (error) {
    return {
      kind: 'wrong',
      message: `${error instanceof Error ? error.message.split('. ')[0] : String(error)}; expected --home DIR, --port N or --host ADDRESS`,
    };
  }
  if (values.help === true) return { kind: 'help' };
  if (values.version === true) return { kind: 'version' };
  for (const name of ['home', 'host', 'restore', 'to'] as const)
    if (values[name] === '') return { kind: 'wrong', message: `--${name}: expected a value` };
  const port = values.port === undefined ? undefined : portOf(values.port);
  if (port === 'wrong') return { kind: 'wrong', message: '--port: expected an integer from 0 to 65535' };
  // npm runs scripts in the folder of the package; a relative path means the user's folder.
  const base = (env['npm_lifecycle_event'] === undefined ? undefined : env['INIT_CWD']) ?? workingDir;
  const home = resolve(base, values.home ?? defaultHome(env));
  const [first, ...others] = positionals;
  if (values.backup === true && others.length === 0) return { kind: 'backup', home, file: first === undefined ? undefined : resolve(base, first) };
  if (values['config-check'] === true && others.length === 0)
    return { kind: 'config-check', home, file: first === undefined ? undefined : resolve(base, first) };
  const extra = positionals.find((word, index) => index > 0 || word !== 'start');
  if (extra !== undefined) return { kind: 'wrong', message: `Unexpected argument "${extra}"; expected --home DIR, --port N or --host ADDRESS` };
  if (values.restore !== undefined) return { kind: 'restore', home, file: resolve(base, values.restore) };
  if (values['storage-import'] === true) return { kind: 'storage-import', home, to: values.to };
  const place = values['install-key'];
  if (place !== undefined) {
    if (place !== 'file' && place !== 'keyring' && place !== 'show')
      return { kind: 'wrong', message: `--install-key: expected file, keyring or show, found "${place}"` };
    return { kind: 'install-key', home, to: place === 'show' ? undefined : place };
  }
  if (values.doctor === true) return { kind: 'doctor', home };
  return { kind: 'start', home, port, host: values.host };
}

function portOf(text: string): number | 'wrong' {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65535 ? Number(text) : 'wrong';
}

/** Returns the home folder that a command uses when none is named. */
export function defaultHome(env: Environment): string {
  return env['GATEHOUSE_HOME'] || join(userHome(), '.gatehouse');
}

/** Returns the user's home folder; the account knows it when HOME is empty. */
function userHome(): string {
  return homedir() || userInfo().homedir;
}
