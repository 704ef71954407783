import type { Client } from '@gatehouse/client';
import type { ParamsInput, Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { CliError, usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { renderColumns, renderTable, renderTime } from '../render/table.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';
import { readLocalText, readSkill } from './read-skill.ts';

type Skill = Result<'skills.list'>['skills'][number];
type Scope = NonNullable<ParamsInput<'skills.create'>['scope']>;
type TargetFlags = CommonFlags & { agent?: string; shared?: true };
type InstallFlags = TargetFlags & { force?: true; name?: string };

/** Timeout for an import, which fetches a repository folder file by file. */
const patienceMs = 120_000;
const maxContentBytes = 1024 * 1024;

/** `gatehouse skills list | show | create | import | update | delete`. */
export function addSkillsCommand(program: Command, io: Io): void {
  const skills = addGroup(program, 'skills')
    .summary('list, install, change and delete skills')
    .description('Instructions for specific kinds of work, vetted before they are saved; all but listing need a token with scope admin.');

  addList(skills, io);
  addShow(skills, io);
  addCreate(skills, io);
  addImport(skills, io);
  addUpdate(skills, io);
  addDelete(skills, io);
}

function addList(skills: Command, io: Io): void {
  withConnection(skills.command('list', { isDefault: true }))
    .description('Lists the skills of an agent with their vetting results.')
    .option('--agent <id>', 'agent (default: the default one)')
    .action(async ({ agent, ...flags }: TargetFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('skills.list', { agentId: agent });
      print(io, flags, listed, () => skillTable(listed.skills));
    });
}

function addShow(skills: Command, io: Io): void {
  withConnection(skills.command('show <name>'))
    .description('Shows the details and findings of a skill.')
    .option('--agent <id>', 'agent (default: the default one)')
    .action(async (name: string, { agent, ...flags }: TargetFlags) => {
      const { client } = await connect(flags, io);
      const found = (await client.call('skills.list', { agentId: agent })).skills.filter((one) => one.name === name);
      if (found.length === 0) throw usageError(`No skill ${plainText(name)}.`);
      print(io, flags, found, () => found.map(skillText).join('\n\n'));
    });
}

function addCreate(skills: Command, io: Io): void {
  withInstall(skills.command('create <path>'))
    .description('Installs a folder with a SKILL.md, or a single SKILL.md.')
    .option('--name <name>', 'name of the skill (default: the folder name)')
    .action(async (path: string, { agent, shared, force, name, ...flags }: InstallFlags) => {
      const local = await readSkill(path, io);
      const { client } = await connect(flags, io);
      const done = await vetted(() =>
        client.call('skills.upload', { name: name ?? local.name, files: [...local.files], force: force === true, ...target(agent, shared) }),
      );
      print(io, flags, done, () => `Installed ${done.name} with ${done.fileCount} files (${done.verdict}).`);
    });
}

function addImport(skills: Command, io: Io): void {
  withInstall(skills.command('import <url>'))
    .description('Installs a folder from a public repository: https://github.com/OWNER/REPOSITORY/tree/BRANCH/PATH.')
    .action(async (url: string, { agent, shared, force, ...flags }: InstallFlags) => {
      const { client } = await connect(flags, io);
      const done = await vetted(() =>
        client.call('skills.import', { url, force: force === true, ...target(agent, shared) }, { timeoutMs: patienceMs }),
      );
      print(io, flags, done, () => `Imported ${done.name} with ${done.fileCount} files (${done.verdict}).`);
    });
}

function addUpdate(skills: Command, io: Io): void {
  withInstall(skills.command('update <name> <file>'))
    .description('Replaces the SKILL.md of a skill; its other files are kept.')
    .action(async (name: string, file: string, { agent, shared, force, ...flags }: InstallFlags) => {
      const content = await readLocalText(file, maxContentBytes, io);
      const { client } = await connect(flags, io);
      const done = await vetted(() => client.call('skills.update', { name, content, force: force === true, ...target(agent, shared) }));
      print(io, flags, done, () => `Replaced ${done.name} (${done.verdict}).`);
    });
}

function addDelete(skills: Command, io: Io): void {
  withTarget(skills.command('delete <name>'))
    .description('Deletes a skill with all its files.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (name: string, { agent, shared, yes, ...flags }: TargetFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Delete the skill ${plainText(name)}?`, io);
      const { client } = await connect(flags, io);
      const done = await client.call('skills.delete', { name, ...target(agent, shared) });
      print(io, flags, done, () => `Deleted ${plainText(name)}.`);
    });
}

function withTarget(command: Command): Command {
  return withConnection(command).option('--agent <id>', 'agent (default: the default one)').option('--shared', 'for all agents');
}

function withInstall(command: Command): Command {
  return withTarget(command).option('--force', 'accept the reported findings; a rejected skill stays rejected');
}

function target(agent: string | undefined, shared: true | undefined): { agentId: string | undefined; scope: Scope } {
  return { agentId: agent, scope: shared === true ? 'shared' : 'local' };
}

/** Reports the gate's complete answer, line by line, and what to do about it. */
async function vetted<T extends Awaited<ReturnType<Client['call']>>>(install: () => Promise<T>): Promise<T> {
  try {
    return await install();
  } catch (error) {
    const kind = error instanceof Error ? /^\[skill_vet_(confirm|rejected):\w+\]/.exec(error.message)?.[1] : undefined;
    if (kind === undefined || !(error instanceof Error)) throw error;
    const hint = kind === 'confirm' ? 'Review the findings; the same command with --force accepts them.' : undefined;
    throw new CliError(error.message.split('\n').map(plainText).join('\n'), { hint, cause: error });
  }
}

function skillTable(skills: readonly Skill[]): string {
  if (skills.length === 0) return 'No skills.';
  return renderTable(
    ['Name', 'Scope', 'State', 'Verdict', 'Findings', 'Uses', 'Description'],
    skills.map(({ name, scope, state, verdict, findings, uses, description }) => [name, scope, state, verdict, findings.length, uses, description]),
  );
}

function skillText(skill: Skill): string {
  const { name, description, scope, source, state, reasons, location, verdict, findings, fileCount, sha256, standing, uses, failures, provenance } =
    skill;
  const facts = renderColumns([
    ['name', name],
    ['about', description],
    ['scope', scope],
    ['state', reasons.length === 0 ? state : `${state}: ${reasons.join('; ')}`],
    ['location', location],
    ['files', fileCount],
    ['digest', sha256],
    ['verdict', verdict],
    ['standing', `${standing}, used ${uses} times, ${failures} failed`],
    [
      'source',
      provenance === undefined
        ? source
        : [source, provenance.tier, ...(provenance.forced ? ['confirmed'] : []), provenance.url, `by ${provenance.by}`, renderTime(provenance.at)]
            .filter((part) => part !== undefined)
            .join(', '),
    ],
  ]);
  if (findings.length === 0) return facts;
  const rows = findings.map((one) => [one.severity, one.line > 0 ? `${one.file}:${one.line}` : one.file, one.rule, one.description]);
  return `${facts}\n\n${renderTable(['Severity', 'Location', 'Rule', 'Description'], rows)}`;
}
