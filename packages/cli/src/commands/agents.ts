import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Result } from '@gatehouse/contract';
import type { BatchEntry, Client } from '@gatehouse/client';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { unreadable, usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { renderColumns, renderTable } from '../render/table.ts';
import { findTemplate, shapedText } from './agent-template.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';

type ConfigFlags = CommonFlags & { name?: string; model?: string; instructions?: string; config?: string; template?: string };
type Agent = Result<'agents.get'>;

/** Maximum number of calls in one batch. */
const batchLength = 50;

/** `gatehouse agents list | show | create | update | suspend | resume | delete`. */
export function addAgentsCommand(program: Command, io: Io): void {
  const agents = addGroup(program, 'agents')
    .summary('list, show, create, change, suspend, resume and delete agents')
    .description('Manages agents; needs a token with scope admin.');

  addList(agents, io);
  addShow(agents, io);
  addCreate(agents, io);
  addUpdate(agents, io);
  addSuspend(agents, io);
  addResume(agents, io);
  addDelete(agents, io);
}

function addList(agents: Command, io: Io): void {
  withConnection(agents.command('list', { isDefault: true }))
    .description('Lists the agents.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const all = await readAgents(client);
      print(io, flags, all, agentTable);
    });
}

function addShow(agents: Command, io: Io): void {
  withConnection(agents.command('show <id>'))
    .description('Shows the effective configuration of an agent.')
    .action(async (agentId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const agent = await client.call('agents.get', { agentId });
      print(io, flags, agent, agentText);
    });
}

function addCreate(agents: Command, io: Io): void {
  withConfig(agents.command('create <id>'))
    .description('Creates an agent, which accepts turns immediately.')
    .action(async (agentId: string, flags: ConfigFlags) => {
      const config = await readConfig(flags, io);
      const template = flags.template === undefined ? undefined : await findTemplate(flags.template);
      const { client } = await connect(flags, io);
      // The server validates the configuration.
      const created = await client.call('agents.create', { agentId, config: { ...template?.chosen.config, ...config } });
      const shaped = await template?.writeFiles(client, agentId);
      print(io, flags, { ...created, ...(shaped !== undefined && { files: shaped }) }, () =>
        [`Created ${created.agentId}; its folder is ${created.workspaceDir}.`, ...(shaped === undefined ? [] : shapedText(shaped))].join('\n'),
      );
    });
}

function addUpdate(agents: Command, io: Io): void {
  withConfig(agents.command('update <id>'))
    .description('Changes keys of an agent from its next turn on; null in --config resets a key to its default.')
    .option('--dry-run', 'only validate, and show the result')
    .action(async (agentId: string, { dryRun = false, ...flags }: ConfigFlags & { dryRun?: boolean }) => {
      const given = await readConfig(flags, io);
      const template = flags.template === undefined ? undefined : await findTemplate(flags.template);
      const config = { ...template?.chosen.config, ...given };
      if (Object.keys(config).length === 0) throw usageError('Nothing to change.', 'Pass --name, --model, --instructions, --template or --config.');
      const { client } = await connect(flags, io);
      const updated = await client.call('agents.update', { agentId, config, dryRun });
      const shaped = dryRun ? undefined : await template?.writeFiles(client, agentId);
      print(io, flags, { ...updated, ...(shaped !== undefined && { files: shaped }) }, () =>
        dryRun
          ? `${JSON.stringify(updated.config, null, 2)}\nNothing was changed.`
          : [`Changed ${updated.agentId}.`, ...(shaped === undefined ? [] : shapedText(shaped))].join('\n'),
      );
    });
}

function addSuspend(agents: Command, io: Io): void {
  withConnection(agents.command('suspend <id>'))
    .description('Suspends an agent: it accepts no new turns, even after a restart.')
    .action(async (agentId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const outcome = await client.call('agents.suspend', { agentId });
      print(io, flags, outcome, () => `Suspended ${outcome.agentId}.`);
    });
}

function addResume(agents: Command, io: Io): void {
  withConnection(agents.command('resume <id>'))
    .description('Resumes a suspended agent.')
    .action(async (agentId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const outcome = await client.call('agents.resume', { agentId });
      print(io, flags, outcome, () => `Resumed ${outcome.agentId}.`);
    });
}

function addDelete(agents: Command, io: Io): void {
  withConnection(agents.command('delete <id>'))
    .description('Deletes an agent; its conversations are kept.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (agentId: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Delete the agent ${agentId}?`, io);
      const { client } = await connect(flags, io);
      const outcome = await client.call('agents.delete', { agentId });
      print(io, flags, outcome, () => `Deleted ${outcome.agentId}.`);
    });
}

function withConfig(command: Command): Command {
  return withConnection(command)
    .option('--name <name>', 'display name of the agent')
    .option('--model <model>', 'its model, as provider/model or model')
    .option('--instructions <text>', 'text added to the system prompt')
    .option(
      '--template <id>',
      'start from assistant, researcher, coder or home-operator: prompt files, tools, approvals, budgets; other flags win over it',
    )
    .option('--config <json>', 'other keys as a JSON object; @FILE reads a file, - standard input');
}

async function readConfig({ config, name, model, instructions }: ConfigFlags, io: Io): Promise<Record<string, unknown>> {
  const given = config === undefined ? {} : parseConfig(await readSource(config, io));
  return {
    ...given,
    ...(name === undefined ? {} : { name }),
    ...(model === undefined ? {} : { model }),
    ...(instructions === undefined ? {} : { instructions }),
  };
}

async function readSource(source: string, io: Io): Promise<string> {
  if (source === '-') return await text(io.stdin);
  if (!source.startsWith('@')) return source;
  const file = resolve(io.workingDir, source.slice(1));
  return await readFile(file, 'utf8').catch((error: Error) => {
    throw unreadable(file, error);
  });
}

function parseConfig(json: string): object {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw usageError(`--config: ${error instanceof Error ? error.message : String(error)}`, 'Expected a JSON object, such as \'{"maxSteps": 20}\'.');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw usageError('--config: expected a JSON object.');
  return value;
}

async function readAgents(client: Client): Promise<Agent[]> {
  const { agents: ids } = await client.call('agents.list');
  const found: Agent[] = [];
  for (let start = 0; start < ids.length; start += batchLength) {
    const entries = ids.slice(start, start + batchLength).map((agentId) => ({ method: 'agents.get', params: { agentId } }) satisfies BatchEntry);
    for (const outcome of await client.batch(entries)) {
      if (outcome.ok) found.push(outcome.result);
      // An agent deleted between the two requests is skipped.
      else if (outcome.error.code !== 'not_found') throw outcome.error;
    }
  }
  return found;
}

const sourceNames: Record<Agent['source'], string> = { file: 'config.yaml', default: 'default', stored: 'database' };

function agentTable(agents: readonly Agent[]): string {
  return renderTable(
    ['Id', 'Name', 'Model', 'Tools', 'State', 'From'],
    agents.map(({ agentId, config, suspended, isDefault, source }) => [
      isDefault ? `${agentId} (default)` : agentId,
      config.name,
      config.model ?? 'first found',
      config.tools.profile,
      suspended ? 'suspended' : 'active',
      sourceNames[source],
    ]),
  );
}

function agentText({ agentId, config, suspended, isDefault, source, workspaceDir }: Agent): string {
  const rows = [
    ['agent', isDefault ? `${agentId} (default)` : agentId],
    ['state', suspended ? 'suspended' : 'active'],
    ['from', sourceNames[source]],
    ['workspace', workspaceDir],
  ];
  return `${renderColumns(rows)}\n${JSON.stringify(config, null, 2)}`;
}
