import type { ParamsInput, Result } from '@gatehouse/contract';
import { type Command, InvalidArgumentError } from 'commander';
import { connect } from '../connection/target.ts';
import type { Io } from '../io.ts';
import { shorten } from '../render/plain.ts';
import { renderTable } from '../render/table.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';

type Tool = Result<'tools.list'>['tools'][number];
type Origin = NonNullable<ParamsInput<'tools.list'>['origin']>;
const origins: readonly Origin[] = ['rpc', 'api', 'v1', 'webhook', 'cron', 'heartbeat', 'channel', 'subagent', 'graph', 'mcp'];
const descriptionLength = 70;

/** `gatehouse tools [AGENT]`. */
export function addToolsCommand(program: Command, io: Io): void {
  withConnection(program.command('tools [agent]'))
    .summary('list the tools of an agent, allowed or denied with a reason')
    .description('Lists every tool with whether turns of an origin may use it; needs a token with scope admin.')
    .option('--origin <origin>', `where the turn comes from: ${origins.join(', ')}`, readOrigin, 'rpc' as Origin)
    .option('--allowed', 'only allowed tools')
    .action(async (agentId: string | undefined, { origin, allowed, ...flags }: CommonFlags & { origin: Origin; allowed?: true }) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('tools.list', { origin, agentId });
      const tools = allowed === true ? listed.tools.filter((tool) => tool.allowed) : listed.tools;
      print(io, flags, { ...listed, tools }, () => toolTable(tools));
    });
}

const refusals: Readonly<Record<NonNullable<Tool['refusal']>, string>> = {
  explicit_deny: 'denied by name',
  not_in_profile: 'not in the profile or the allow list',
  origin: 'not for turns of this origin',
};

function readOrigin(text: string): Origin {
  const found = origins.find((origin) => origin === text);
  if (found === undefined) throw new InvalidArgumentError(`Expected one of ${origins.join(', ')}.`);
  return found;
}

function toolTable(tools: readonly Tool[]): string {
  if (tools.length === 0) return 'No tools.';
  return renderTable(
    ['Tool', 'From', 'Risk', 'Allowed', 'Why not', 'Description'],
    tools.map(({ name, source, risk, allowed, refusal, deferred, description }) => [
      name,
      source,
      risk,
      allowed ? (deferred ? 'when found' : 'yes') : 'no',
      refusal === undefined ? undefined : refusals[refusal],
      shorten(description, descriptionLength),
    ]),
  );
}
