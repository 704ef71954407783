import type { Environment } from '../kernel/config/references.ts';
import { quoted } from '../kernel/private-file.ts';

export interface Greeting {
  readonly version: string;
  readonly home: string;
  readonly firstStart: boolean;
  /** Sources of the providers, as reported by `Models.describeDiscovery`. */
  readonly discovery: {
    readonly providers: readonly {
      readonly id: string;
      readonly name: string;
      readonly source: string;
      readonly from: string;
      readonly modelCount: number;
    }[];
    readonly defaultModel: string;
  };
  /** Command that connects a model; undefined when one is connected. */
  readonly setup: string | undefined;
  readonly agentId: string;
  /** Null when there is no listener. */
  readonly address: string | null;
  readonly socketFile: string;
  /** Shell expression for the token, or undefined when only the operator knows one. */
  readonly tokenExpression: string | undefined;
  /** Undefined when no dashboard is served; `token` is the secret of the token file, when there is one. */
  readonly dashboard: { readonly token: string | undefined } | undefined;
  readonly warnings: readonly string[];
}

/**
 * Returns the lines that the start prints. The last one is the address. The link to the dashboard contains the token, in its fragment,
 * only where a person reads it: on a terminal, and at the first start unless a service manager keeps it in its log.
 */
export function greetingLines(
  greeting: Greeting,
  style: {
    readonly terminal: boolean;
    readonly supervised: boolean;
    readonly bold: (text: string) => string;
    readonly yellow: (text: string) => string;
  },
): string[] {
  const { address } = greeting;
  const row = (label: string, text: string) => `  ${label.padEnd(8)}${text}`;
  return [
    style.bold(`Gatehouse ${greeting.version}`),
    row('home', `${greeting.home}${greeting.firstStart ? '  (created now; settings in config.yaml)' : ''}`),
    row('model', modelText(greeting.discovery)),
    ...(greeting.setup === undefined ? [] : [row('setup', setupText(greeting.setup, address !== null && greeting.dashboard !== undefined))]),
    ...(address === null
      ? []
      : [
          ...dashboardLink(address, greeting, style.terminal || (greeting.firstStart && !style.supervised)).map((link) => row('open', link)),
          row('try', curlLine(address, greeting)),
        ]),
    ...greeting.warnings.map((warning) => row('warning', style.yellow(warning))),
    address === null ? `No listener (gateway.enabled is false); socket ${greeting.socketFile}` : style.bold(address),
  ];
}

function modelText({ providers, defaultModel }: Greeting['discovery']): string {
  const found = providers.map(
    ({ name, source, from, modelCount }) =>
      `${name}, ${source === 'built_in' ? 'built in' : `${modelCount} ${modelCount === 1 ? 'model' : 'models'}, from ${from}`}`,
  );
  return `${defaultModel}  (found: ${found.join('; ')})`;
}

function setupText(command: string, hasDashboard: boolean): string {
  const ways = hasDashboard ? `run \`${command}\` in another terminal, or open the link below` : `run \`${command}\` in another terminal`;
  return `no model is connected yet: ${ways}`;
}

/** Returns the command that connects a model to the daemon of a home; npm runs the one of a clone. */
export function setupCommand(home: string, defaultHome: string, env: Environment): string {
  const command = env['npm_lifecycle_event'] === undefined ? 'gatehouse setup' : 'npx gatehouse setup';
  return home === defaultHome ? command : `${command} --home ${quoted(home)}`;
}

function dashboardLink(address: string, { dashboard }: Greeting, showToken: boolean): string[] {
  if (dashboard === undefined) return [];
  const { token } = dashboard;
  // A fragment is never sent, so the token appears in no log of a server or proxy.
  return [`${reachable(address)}/${showToken && token !== undefined ? `#token=${encodeURIComponent(token)}` : ''}`];
}

function curlLine(address: string, { agentId, tokenExpression }: Greeting): string {
  const body = JSON.stringify({ model: `agent/${agentId}`, messages: [{ role: 'user', content: 'Hello' }] });
  return `curl ${reachable(address)}/v1/chat/completions -H "authorization: Bearer ${tokenExpression ?? '$TOKEN'}" -H 'content-type: application/json' -d '${body}'`;
}

/** Returns a dialable address for one that means all addresses of the machine. */
function reachable(address: string): string {
  return address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

/** Returns `$(cat FILE)`, so that the secret itself is not on the screen. */
export function tokenFromFile(path: string): string {
  return `$(cat ${quoted(path)})`;
}
