import { AuthenticationError, type Client, GatehouseError, MethodNotFoundError, PermissionError, RateLimitError } from '@gatehouse/client';
import type { ProviderState } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect, homeDir } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { CliError, describeFailure } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderColumns, renderDuration } from '../render/table.ts';
import { readDaemonMode } from './daemon-process.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';

export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  readonly hint?: string | undefined;
}

/** `gatehouse doctor`: runs the daemon's checks of its home, and checks the running daemon. Exits with 1 when a check failed. */
export function addDoctorCommand(program: Command, io: Io, setExit: SetExit): void {
  withConnection(program.command('doctor'))
    .summary('diagnose problems')
    .description(
      'Checks Node, the clock, the home folder, its permissions, the configuration, free disk space, the process that uses the home folder, the port, the database, the models, the jail, and the running daemon with its model providers.',
    )
    .action(async (flags: CommonFlags) => {
      const checks = [...(await offlineChecks(flags, io)), ...(await onlineChecks(flags, io))];
      if (checks.some((check) => check.status === 'fail')) setExit(exitCode.failed);
      print(io, flags, { checks }, () => renderChecks(checks));
    });
}

async function offlineChecks(flags: CommonFlags, io: Io): Promise<Check[]> {
  try {
    const { code, stdout, stderr } = await readDaemonMode(['--home', homeDir(flags, io), '--doctor'], io);
    const checks = code === 0 ? parseChecks(stdout) : undefined;
    return checks ?? [crashOf(code, stderr)];
  } catch (error) {
    const { message, hint } = describeFailure(error);
    return [{ name: 'daemon file', status: 'fail', detail: `The daemon's checks failed to run: ${message}`, hint }];
  }
}

/** Returns undefined for anything but one JSON document with complete checks. */
function parseChecks(text: string): Check[] | undefined {
  try {
    const report: unknown = JSON.parse(text);
    const checks: unknown = typeof report === 'object' && report !== null && 'checks' in report ? report.checks : undefined;
    return Array.isArray(checks) && checks.every(isCheck) ? checks : undefined;
  } catch {
    return undefined;
  }
}

function isCheck(value: unknown): value is Check {
  if (typeof value !== 'object' || value === null) return false;
  const { name, status, detail, hint }: { readonly [K in keyof Check]?: unknown } = value;
  const isStatus = status === 'ok' || status === 'warn' || status === 'fail';
  return isStatus && typeof name === 'string' && typeof detail === 'string' && (hint === undefined || typeof hint === 'string');
}

/** Reports a failure of the check itself, not of the installation. */
function crashOf(code: number, stderr: string): Check {
  const end = stderr.trim().split('\n').at(-1) ?? '';
  const said = end === '' ? 'No output on standard error.' : `Output: ${shorten(end, 200)}`;
  const how = code === 0 ? 'exited without a report' : code > 128 ? `was killed by signal ${code - 128}` : `exited with code ${code}`;
  return {
    name: 'daemon file',
    status: 'fail',
    detail: `The check crashed: it ${how}. ${said}`,
    hint: 'This says nothing about the installation. Run it again, and report the problem if it persists.',
  };
}

async function onlineChecks(flags: CommonFlags, io: Io): Promise<Check[]> {
  const checks: Check[] = [];
  try {
    const { client, url, hasToken } = await connect(flags, io);
    const health = await client.health({ timeoutMs: 5_000 });
    const isStandby = health.status === 'standby';
    const isWell = health.status === 'ok' || isStandby;
    checks.push({ name: 'daemon', status: isWell ? 'ok' : 'warn', detail: `version ${health.version} at ${url}: ${health.status}` });
    // It answers nothing else, and its providers are asked by the active node.
    if (isStandby) return checks;
    const providers = await providerChecks(client, io);
    checks.push(
      ...Object.entries(health.checks).flatMap(([name, check]) =>
        // The provider rows are more specific than `/health`, which names none.
        check.status === 'ok' || (name === 'models' && providers.some(({ status }) => status === 'warn'))
          ? []
          : [{ name, status: 'warn' as const, detail: check.detail ?? check.status }],
      ),
      ...providers,
      ...(await configurationChecks(client)),
    );
    checks.push(hasToken ? await tokenCheck(client) : { name: 'token', status: 'ok', detail: 'not required on the owner-only socket' });
  } catch (error) {
    const { message, hint } = describeFailure(error);
    // A home without a token, where no daemon has run yet, is not an error.
    if (error instanceof CliError && error.exitCode === exitCode.refused)
      return [...checks, { name: 'token', status: 'warn', detail: message, hint }];
    const isStopped = error instanceof GatehouseError && error.code === 'connection_failed';
    checks.push({
      name: 'daemon',
      status: isStopped ? 'warn' : 'fail',
      detail: isStopped ? 'not running' : message,
      hint: isStopped ? '`gatehouse start` starts it.' : hint,
    });
  }
  return checks;
}

/** Returns a check for each model provider of the running daemon; none for callers without permission. */
async function providerChecks(client: Client, io: Io): Promise<Check[]> {
  const found = await ifAllowed(client.call('providers.list', {}, { timeoutMs: 5_000 }));
  return found?.providers.map((one) => describeProvider(one, io.now())) ?? [];
}

/** Returns how the file differs from the configuration of the running daemon. */
async function configurationChecks(client: Client): Promise<Check[]> {
  const status = await ifAllowed(client.call('gateway.status', {}, { timeoutMs: 5_000 }));
  const name = 'in force';
  const checks: Check[] = [];
  if (status === undefined) return [];
  if (status.configFault !== undefined)
    checks.push({ name, status: 'warn', detail: 'an earlier configuration, because the file cannot be used', hint: status.configFault });
  if (status.restartNeeded.length > 0)
    checks.push({
      name,
      status: 'warn',
      detail: `a restart is needed for ${status.restartNeeded.join(', ')}`,
      hint: '`gatehouse call gateway.restart` waits for running turns first.',
    });
  return checks;
}

/** Returns undefined for callers without permission, and for daemons that do not have the method. */
async function ifAllowed<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    // A wrong token has its own row.
    const isRefused = error instanceof AuthenticationError || error instanceof PermissionError || error instanceof RateLimitError;
    if (isRefused || error instanceof MethodNotFoundError) return undefined;
    throw error;
  }
}

function describeProvider({ provider, state, untilMs, cause }: ProviderState, nowMs: number): Check {
  const name = 'provider';
  if (state === 'ok') return { name, status: 'ok', detail: provider };
  const until = untilMs === undefined || untilMs <= nowMs ? '' : `, next call in ${renderDuration(untilMs - nowMs)}`;
  return {
    name,
    status: 'warn',
    detail: `${provider}: ${providerLabels[state]}${until}${cause === undefined ? '' : `; ${cause}`}`,
    hint: `\`gatehouse call providers.retry --provider ${provider}\` retries it now.`,
  };
}

const providerLabels = { refused: 'refused the credentials', cooling: 'asked to wait', unreachable: 'does not respond properly' } as const;

async function tokenCheck(client: Client): Promise<Check> {
  try {
    await client.call('system.ping', {}, { timeoutMs: 5_000 });
    return { name: 'token', status: 'ok', detail: 'accepted' };
  } catch (error) {
    const { message, hint } = describeFailure(error);
    return { name: 'token', status: error instanceof RateLimitError ? 'warn' : 'fail', detail: message, hint };
  }
}

function renderChecks(checks: readonly Check[]): string {
  const table = renderColumns(checks.map(({ status, name, detail }) => [status, name, detail])).split('\n');
  // Each check has one line, so lines and checks have the same index.
  return checks.flatMap(({ hint }, index) => [table[index] ?? '', ...(hint === undefined ? [] : [`      ${plainText(hint)}`])]).join('\n');
}
