import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import type { SetExit } from '../exit-codes.ts';
import { usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { confirm } from './confirm.ts';
import { looksLikeFile, readGraphFile } from './graph-file.ts';
import { readGraph } from './graph-follow.ts';
import { addAnswer, addCancel, addOutputs, addRun, addRuns, addStatus, addWatch } from './graph-runs.ts';
import { callByNames, findSavedId, loadSaved, printWarnings } from './graph-source.ts';
import { definedText, drawDefinition, drawView, outputsText, savedTable } from './graph-text.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';

type PageFlags = CommonFlags & { limit: number; offset: number };

/** `gatehouse graph validate | run | status | outputs | cancel | answer | save | list | runs | show | delete | draw`. */
export function addGraphCommand(program: Command, io: Io, setExit: SetExit): void {
  const graph = addGroup(program, 'graph')
    .summary('validate, run, watch and save graphs of agents')
    .description('Graphs of agent tasks with dependencies. FILE is YAML or JSON, SAVED the name or id (sg_…) of a saved graph, ID a run (gr_…).');

  addList(graph, io);
  addValidate(graph, io);
  addRun(graph, io, setExit);
  addWatch(graph, io, setExit);
  addStatus(graph, io);
  addOutputs(graph, io);
  addCancel(graph, io);
  addAnswer(graph, io);
  addSave(graph, io);
  addRuns(graph, io);
  addShow(graph, io);
  addDelete(graph, io);
  addDraw(graph, io);
}

function addList(graph: Command, io: Io): void {
  withConnection(graph.command('list', { isDefault: true }))
    .description('Lists saved graphs by name.')
    .addOption(countOption('--limit <n>', 'how many, at most 200', 50))
    .addOption(countOption('--offset <n>', 'number of entries to skip', 0))
    .action(async ({ limit, offset, ...flags }: PageFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('graph.list', { limit, offset });
      print(io, flags, listed, savedTable);
    });
}

function addValidate(graph: Command, io: Io): void {
  withConnection(graph.command('validate <file>'))
    .description('Checks whether a graph can run, and shows its order and warnings; runs nothing.')
    .action(async (file: string, flags: CommonFlags) => {
      const definition = await readGraphFile(file, io);
      const { client } = await connect(flags, io);
      const defined = await callByNames(definition, flags, () => client.call('graph.define', definition));
      print(io, flags, defined, definedText);
    });
}

function addSave(graph: Command, io: Io): void {
  withConnection(graph.command('save <file>'))
    .description('Saves a graph under its label or another one.')
    .option('--label <text>', 'name of the saved graph (default: `label` in the file)')
    .option('--id <id>', 'replace this saved graph (sg_…)')
    .option('--agent <id>', 'agent that owns it')
    .action(async (file: string, { label, id, agent, ...flags }: CommonFlags & { label?: string; id?: string; agent?: string }) => {
      const definition = await readGraphFile(file, io);
      const name = label ?? definition.label;
      if (name === undefined) throw usageError('The graph has no name.', 'Set one with --label, or as `label` in the file.');
      const { client } = await connect(flags, io);
      const done = await callByNames(definition, flags, () =>
        client.call('graph.save', { ...definition, label: name, ...(id !== undefined && { id }), ...(agent !== undefined && { agentId: agent }) }),
      );
      printWarnings(done.warnings, flags, io);
      print(io, flags, done, () => `Saved ${plainText(name)}: ${done.id}`);
    });
}

function addShow(graph: Command, io: Io): void {
  withConnection(graph.command('show <graph>'))
    .description('Prints a saved graph as YAML, or a run with the complete outputs of its nodes.')
    .action(async (given: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      if (given.startsWith('gr_')) {
        const run = await client.call('graph.runDetail', { graphId: given });
        const outputs = Object.fromEntries(run.nodes.map(({ nodeId, output }) => [nodeId, output]));
        return print(io, flags, run, () => `${plainText(run.name)}, ${run.status}, ${run.date}\n\n${outputsText(outputs)}`);
      }
      const { label, nodes, edges, settings, ...rest } = await loadSaved(client, given);
      if (flags.output === 'json') return printLine(io.stdout, JSON.stringify({ label, nodes, edges, settings, ...rest }));
      const { stringify } = await import('./yaml.ts');
      io.stdout.write(
        printable(stringify({ label, nodes, ...(edges.length > 0 && { edges }), ...(Object.keys(settings).length > 0 && { settings }) })),
      );
    });
}

function addDelete(graph: Command, io: Io): void {
  withConnection(graph.command('delete <id>'))
    .description('Deletes a saved graph (SAVED) but not its runs, or a run (gr_…) with its outputs.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (given: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      const isRun = given.startsWith('gr_');
      if (yes !== true) await confirm(`Delete ${isRun ? 'the run' : 'the saved graph'} ${plainText(given)}?`, io);
      const { client } = await connect(flags, io);
      const done = isRun
        ? await client.call('graph.deleteRun', { graphId: given })
        : await client.call('graph.delete', { id: await findSavedId(client, given) });
      print(io, flags, done, () => `Deleted ${plainText(given)}.`);
    });
}

function addDraw(graph: Command, io: Io): void {
  withConnection(graph.command('draw <graph>'))
    .description('Draws a run with the states of its nodes, a saved graph, or a file.')
    .action(async (given: string, flags: CommonFlags) => {
      const fromFile = looksLikeFile(given) ? await readGraphFile(given, io) : undefined;
      const { client } = await connect(flags, io);
      if (given.startsWith('gr_')) {
        const view = await readGraph(client, given);
        return print(io, flags, view, drawView);
      }
      const definition = fromFile ?? (await loadSaved(client, given));
      // Validates first: a cycle can't be drawn.
      if (fromFile !== undefined) await callByNames(fromFile, flags, () => client.call('graph.define', fromFile));
      print(io, flags, definition, drawDefinition);
    });
}

/** Makes each line of a text safe to print. */
function printable(text: string): string {
  return text
    .split('\n')
    .map((line) => plainText(line))
    .join('\n');
}
