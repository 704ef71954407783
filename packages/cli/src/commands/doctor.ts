import { type Client, GatehouseError } from '@gatehouse/client';
import type { Command } from 'commander';
import { connect, homeDir } from '../connection/target.ts';
import { exitCode } from '../exit-codes.ts';
import { CliError, describeFailure } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { renderColumns } from '../render/table.ts';
import { runDaemonMode } from './daemon-process.ts';
import { type CommonFlags, withConnection } from './options.ts';

export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  readonly hint?: string | undefined;
}

/** `gatehouse doctor`: what the daemon's own look at its home finds, and whether it answers. Ends with 1 when a check failed. */
export function addDoctorCommand(program: Command, io: Io, setExit: (code: number) => void): void {
  withConnection(program.command('doctor'))
    .summary('look for what is wrong')
    .description('Checks Node, the home folder, its permissions, the configuration, the port, the database, the models and the running daemon.')
    .action(async (flags: CommonFlags) => {
      const checks = [...(await offlineChecks(flags, io)), ...(await onlineChecks(flags, io))];
      if (checks.some((check) => check.status === 'fail')) setExit(exitCode.failed);
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify({ checks }) : renderChecks(checks));
    });
}

async function offlineChecks(flags: CommonFlags, io: Io): Promise<Check[]> {
  try {
    const lines: string[] = [];
    for await (const line of runDaemonMode(['--home', homeDir(flags, io), '--doctor'], io)) lines.push(line);
    const report: { checks?: Check[] } = JSON.parse(lines.join('\n'));
    if (!Array.isArray(report.checks)) throw new Error('it printed no checks');
    return report.checks;
  } catch (error) {
    const { message, hint } = describeFailure(error);
    return [{ name: 'daemon file', status: 'fail', detail: `The checks of the daemon did not run: ${message}`, hint }];
  }
}

async function onlineChecks(flags: CommonFlags, io: Io): Promise<Check[]> {
  const checks: Check[] = [];
  try {
    const { client, url, hasToken } = await connect(flags, io);
    const health = await client.health({ timeoutMs: 5_000 });
    checks.push({ name: 'daemon', status: health.status === 'ok' ? 'ok' : 'warn', detail: `version ${health.version} at ${url}: ${health.status}` });
    checks.push(
      ...Object.entries(health.checks).flatMap(([name, check]) =>
        check.status === 'ok' ? [] : [{ name, status: 'warn' as const, detail: check.detail ?? check.status }],
      ),
    );
    checks.push(hasToken ? await tokenCheck(client) : { name: 'token', status: 'ok', detail: 'none needed at the owner-only socket' });
  } catch (error) {
    const { message, hint } = describeFailure(error);
    // A home in which no daemon has made a token yet, or where none runs, is no fault in itself.
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

async function tokenCheck(client: Client): Promise<Check> {
  try {
    await client.call('system.ping', {}, { timeoutMs: 5_000 });
    return { name: 'token', status: 'ok', detail: 'accepted' };
  } catch (error) {
    const { message, hint } = describeFailure(error);
    return { name: 'token', status: 'fail', detail: message, hint };
  }
}

function renderChecks(checks: readonly Check[]): string {
  const table = renderColumns(checks.map(({ status, name, detail }) => [status, name, detail])).split('\n');
  // Checks have one line each, so the lines and the checks run in step.
  return checks.flatMap(({ hint }, index) => [table[index] ?? '', ...(hint === undefined ? [] : [`      ${hint}`])]).join('\n');
}
