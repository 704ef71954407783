import { type Command, Argument } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { type Bundle, type Left, type Product, products } from '../import/bundle.ts';
import { type Step, planImport } from '../import/plan.ts';
import { runSteps, type StepResult } from '../import/run-steps.ts';
import { type Io, printLine } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { renderTable } from '../render/table.ts';
import { untilInterrupted } from './interrupt.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';

type ImportFlags = CommonFlags & { apply?: true };

/** `gatehouse import <product> <path>`. */
export function addImportCommand(program: Command, io: Io, setExit: SetExit): void {
  withConnection(program.command('import'))
    .summary('bring agents, prompts, skills, memories and jobs from another product')
    .description(
      'Lists what an import would take, change and leave; with --apply it does so. What is here already stays as it is, so it can be repeated. Needs a token with scope *.',
    )
    .addArgument(new Argument('<product>', 'where they come from').choices(products))
    .argument('<path>', 'its folder; for open-webui also webui.db or an exported file')
    .option('--apply', 'import; without it nothing is changed')
    .action((product: Product, path: string, { apply, ...flags }: ImportFlags) =>
      untilInterrupted(io, setExit, async (signal) => {
        const bundle = await readBundle(product, path, io);
        const { client } = await connect(flags, io);
        const steps = await planImport(bundle, client.call);
        if (apply !== true) return print(io, flags, planResult(steps, bundle), () => planText(steps, bundle));
        const onWait = (ms: number) => printLine(io.stderr, `Waiting ${Math.ceil(ms / 1000)} s: the daemon limits writes per minute.`);
        const pending = steps.filter(({ state }) => state === 'take');
        const results = await runSteps(pending, client, { signal, onWait });
        if (results.some(({ failure }) => failure !== undefined)) setExit(exitCode.failed);
        print(io, flags, outcomeResult(results, steps, bundle), () => outcomeText(results, steps, bundle));
      }),
    );
}

/** The readers are loaded for an import only. */
async function readBundle(product: Product, given: string, io: Io): Promise<Bundle> {
  const { resolve } = await import('node:path');
  const path = resolve(io.workingDir, given);
  if (product === 'open-webui') {
    const { readOpenWebUi } = await import('../import/open-webui.ts');
    return readOpenWebUi(path);
  }
  const { SourceFolder } = await import('../import/source-folder.ts');
  const source = await SourceFolder.open(path);
  if (product === 'comis') {
    const { readComis } = await import('../import/comis.ts');
    return readComis(source, io.now());
  }
  const { readOpenClaw } = await import('../import/openclaw.ts');
  return readOpenClaw(source, io.now());
}

const shown = ({ kind, what, from, changes }: Step) => ({ kind, what, from, changes });
const leftShown = ({ what, from, reason }: Left) => ({ what, from, reason });

function planResult(steps: readonly Step[], bundle: Bundle) {
  const of = (state: Step['state']) => steps.filter((step) => step.state === state).map(shown);
  return {
    product: bundle.product,
    applied: false,
    take: of('take'),
    here: of('same'),
    kept: of('kept'),
    left: bundle.left.map(leftShown),
  };
}

function outcomeResult(results: readonly StepResult[], steps: readonly Step[], bundle: Bundle) {
  const failed = results.flatMap(({ step, failure }) => (failure === undefined ? [] : [{ ...shown(step), reason: failure }]));
  const taken = results.filter(({ failure }) => failure === undefined).map(({ step }) => shown(step));
  return { ...planResult(steps, bundle), applied: true, take: taken, failed };
}

function planText(steps: readonly Step[], { product, left }: Bundle): string {
  const pending = steps.filter(({ state }) => state === 'take');
  return [
    ...stepTable(`Would be imported from ${product}`, pending),
    ...standingText(steps),
    ...leftTable(left),
    pending.length === 0
      ? 'Everything that can be imported is here already; nothing to do.'
      : 'Nothing was changed. Repeat the command with --apply to import.',
  ].join('\n');
}

function outcomeText(results: readonly StepResult[], steps: readonly Step[], { product, left }: Bundle): string {
  const taken = results.filter(({ failure }) => failure === undefined).map(({ step }) => step);
  const failed = results.flatMap(({ step, failure }) =>
    failure === undefined ? [] : [{ what: `${step.kind} ${step.what}`, from: step.from, reason: failure }],
  );
  return [
    ...stepTable(`Imported from ${product}`, taken),
    ...standingText(steps),
    ...leftTable(left),
    ...(failed.length === 0 ? [] : leftTable(failed, 'Failed')),
    results.length === 0
      ? 'Everything that can be imported is here already; nothing was changed.'
      : failed.length === 0
        ? `Imported ${taken.length} of ${results.length}.`
        : `Imported ${taken.length} of ${results.length}. Repeat the command once the causes are removed: it continues with what is missing.`,
  ].join('\n');
}

function stepTable(title: string, steps: readonly Step[]): string[] {
  if (steps.length === 0) return [];
  const rows = steps.map(({ kind, what, from, changes }) => [kind, what, from, changes.length === 0 ? undefined : changes.join('; ')]);
  return [`${title} (${steps.length}):`, '', renderTable(['Kind', 'What', 'From', 'Changed'], rows), ''];
}

function standingText(steps: readonly Step[]): string[] {
  const same = steps.filter(({ state }) => state === 'same').length;
  const kept = steps.filter(({ state }) => state === 'kept');
  return [
    ...(same === 0 ? [] : [`Already here: ${same}.`, '']),
    ...(kept.length === 0
      ? []
      : [
          `Here under the same name, and kept as they are (${kept.length}): ${plainText(kept.map(({ kind, what }) => `${kind} ${what}`).join(', '))}.`,
          '',
        ]),
  ];
}

function leftTable(left: readonly Left[], title = 'Left'): string[] {
  if (left.length === 0) return [];
  return [
    `${title} (${left.length}):`,
    '',
    renderTable(
      ['What', 'From', 'Reason'],
      left.map(({ what, from, reason }) => [what, from, reason]),
    ),
    '',
  ];
}
