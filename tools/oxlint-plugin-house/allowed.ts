/** Files exempt from a lint rule: path below packages/server/src (a folder ends with "/") and reason. */
export interface Exemption {
  readonly path: string;
  readonly reason: string;
}

export const allowed = {
  clock: [{ path: 'kernel/clock.ts', reason: 'is the clock' }],
  environment: [{ path: 'main.ts', reason: 'passes the process to the daemon' }],
  json: [
    { path: 'kernel/json.ts', reason: 'is the parser with the depth limit' },
    { path: 'llm/', reason: 'answers of configured providers, limited in bytes before they are parsed, once per delta' },
    { path: 'runtime/stored-message.ts', reason: 'reads the column that it writes' },
    { path: 'features/agents/agents/registry.ts', reason: 'reads the column that it writes' },
    { path: 'features/conversations/responses/responses.ts', reason: 'reads the columns that the route writes, of what was parsed within the limit' },
    { path: 'kernel/json-fragment.ts', reason: 'one string literal, joined from fragments that the wire client has checked' },
    { path: 'kernel/answer-task.ts', reason: 'reads the argument that the daemon writes' },
    { path: 'kernel/lifecycle/', reason: 'reads the files that it writes into the home folder' },
    { path: 'features/environment/browser/engine/browser-worker.ts', reason: 'messages of a browser, in a thread that they alone use' },
    { path: 'features/environment/browser/engine/driver.ts', reason: 'reads the state that it writes' },
  ],
  network: [
    { path: 'kernel/egress.ts', reason: 'is the outward-request module' },
    { path: 'kernel/undici.ts', reason: 'is the only entry to undici, for the outward-request module and the model clients' },
    { path: 'kernel/guarded-fetch.ts', reason: 'is its `fetch` for protocols of libraries, over the same checked addresses' },
    { path: 'kernel/guarded-proxy.ts', reason: 'is the proxy of browsers in the jail, over the same checked addresses' },
    { path: 'llm/', reason: 'connects to configured model providers with separate connection pools' },
    { path: 'channels/', reason: 'connects to configured chat platforms' },
    { path: 'features/operations/observability/traces/collector-client.ts', reason: 'speaks to the collector that the operator names' },
  ],
  process: [
    { path: 'kernel/jail.ts', reason: 'runs programs in a jail, or not at all' },
    { path: 'kernel/keyring.ts', reason: 'starts a process of this program, with fixed actions and the fingerprint of the install key' },
    { path: 'kernel/run-in-process.ts', reason: 'starts processes of this program, without environment; untrusted bytes are their input alone' },
    { path: 'kernel/lifecycle/lease-watchdog.ts', reason: 'starts a process of this program, without environment' },
    { path: 'kernel/lifecycle/notify.ts', reason: 'sends a fixed message to systemd, without text from outside' },
    {
      path: 'features/environment/workspace/git/git.ts',
      reason: 'runs git: fixed arguments, cleared environment, a repository out of reach of agents',
    },
  ],
  paths: [
    { path: 'kernel/safe-path.ts', reason: 'is the safe-path module' },
    { path: 'kernel/home-paths.ts', reason: 'fixed names below the home folder, and below the folder that the operator names' },
    { path: 'process/start-arguments.ts', reason: 'the operator names the home folder' },
    { path: 'kernel/db/', reason: 'names of database files are constants and numbers' },
    { path: 'gateway/control-socket.ts', reason: 'the name is a time of the clock' },
    { path: 'gateway/tls.ts', reason: 'the operator names the files' },
    { path: 'gateway/routes/dashboard-files.ts', reason: 'the operator names the folder, and only the names that it lists are read' },
    { path: 'features/agents/agents/registry.ts', reason: 'an agent id has neither dot nor separator' },
  ],
  exit: [
    { path: 'process/daemon.ts', reason: 'owns the process' },
    { path: 'kernel/lifecycle/lease-watchdog-process.ts', reason: 'is a process' },
    { path: 'kernel/answer-task.ts', reason: 'runs in a process for one task' },
  ],
  random: [] as Exemption[],
} satisfies Record<string, readonly Exemption[]>;

export type RuleName = keyof typeof allowed;

const serverSource = 'packages/server/src/';

/** Returns whether a rule applies to this file: server code without exemption that is neither a test nor a test helper (`testing.ts`, `testing/`). */
export function holdsIn(rule: RuleName, filename: string): boolean {
  const path = filename.replaceAll('\\', '/');
  const start = path.lastIndexOf(serverSource);
  if (start < 0 || path.endsWith('.test.ts') || /\/testing(\/|\.ts$)/.test(path)) return false;
  const inside = path.slice(start + serverSource.length);
  return !allowed[rule].some((exemption) => (exemption.path.endsWith('/') ? inside.startsWith(exemption.path) : inside === exemption.path));
}
