import type { ParamsInput, Result } from '@gatehouse/contract';
import { type Command, InvalidArgumentError } from 'commander';
import { connect } from '../connection/target.ts';
import type { Io } from '../io.ts';
import { type Cell, renderTable } from '../render/table.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';

type Key = NonNullable<ParamsInput<'usage.report'>['groupBy']>[number];
type Report = Result<'usage.report'>;
type Sums = Report['totals'];

const keys: readonly Key[] = ['day', 'agent', 'model', 'provider', 'operation', 'conversation'];
/** Length of the longest bar in characters. */
const barLength = 24;
const unitMs = { h: 3_600_000, d: 86_400_000 } as const;

/** `gatehouse usage`: shows what model calls used and cost, with a bar for each row. */
export function addUsageCommand(program: Command, io: Io): void {
  withConnection(program.command('usage'))
    .summary('show usage and cost of models')
    .description('Shows usage and cost of model calls: of all users with scope admin, otherwise of the token.')
    .option('--by <keys>', `one or two of ${keys.join(', ')}`, readKeys, ['day'] as Key[])
    .option('--last <span>', 'reporting period, such as 24h or 30d', readSpan, 7 * unitMs.d)
    .option('--agent <id>', 'only calls of this agent')
    .option('--time-zone <zone>', "time zone of the days (default: this machine's)")
    .addOption(countOption('--limit <n>', 'number of rows', 50))
    .action(async ({ by, last, agent, timeZone, limit, ...flags }: UsageFlags) => {
      const { client } = await connect(flags, io);
      const untilMs = io.now();
      const report = await client.call('usage.report', {
        groupBy: by,
        sinceMs: untilMs - last,
        untilMs,
        limit,
        timeZone: timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
        agentId: agent,
      });
      print(io, flags, report, () => reportText(report, by));
    });
}

type UsageFlags = CommonFlags & { by: Key[]; last: number; agent?: string; timeZone?: string; limit: number };

function readKeys(text: string): Key[] {
  const words = text.split(',').map((word) => word.trim());
  const found = words.map((word) => keys.find((key) => key === word));
  if (found.length > 2 || found.includes(undefined) || new Set(found).size !== found.length)
    throw new InvalidArgumentError(`Expected one or two of ${keys.join(', ')}, separated by a comma.`);
  return found.filter((key) => key !== undefined);
}

function readSpan(text: string): number {
  const [, digits, unit] = /^([1-9]\d{0,3})([hd])$/.exec(text) ?? [];
  if (digits === undefined || (unit !== 'h' && unit !== 'd')) throw new InvalidArgumentError('Expected hours or days, such as 24h or 30d.');
  return Number(digits) * unitMs[unit];
}

function reportText({ rows, totals, truncated }: Report, by: readonly Key[]): string {
  if (totals.calls === 0) return 'No model calls in this period.';
  // Compares tokens when no price is known at all.
  const inMoney = totals.costUsd !== null && totals.costUsd > 0;
  const valueOf = (sums: Sums): number => (inMoney ? (sums.costUsd ?? 0) : sums.inputTokens + sums.outputTokens);
  const highest = Math.max(...rows.map(valueOf));
  const table = renderTable(
    [...by, 'Calls', 'Input', 'Cached', 'Output', 'Cost', inMoney ? 'Of the cost' : 'Of the tokens'],
    [
      ...rows.map((row) => [...row.keys.map((key) => key ?? 'none'), ...cellsOf(row), bar(valueOf(row), highest)]),
      [...by.map((_, at) => (at === 0 ? 'total' : '')), ...cellsOf(totals), ''],
    ],
  );
  const notes = [
    ...(truncated ? ['Not all rows are shown; --limit shows more. The total covers all rows.'] : []),
    ...(totals.unpriced > 0 ? [`${totals.unpriced} calls have no known price: their cost is missing from the totals (+).`] : []),
    ...(totals.savedUsd !== 0 ? [`Provider caches saved ${dollars(totals.savedUsd)}.`] : []),
  ];
  return [table, ...(notes.length > 0 ? ['', ...notes] : [])].join('\n');
}

function cellsOf({ calls, inputTokens, cacheReadTokens, outputTokens, costUsd, unpriced }: Sums): Cell[] {
  const cached = inputTokens === 0 ? undefined : `${Math.round((cacheReadTokens / inputTokens) * 100)} %`;
  const cost = costUsd === null ? 'unknown' : `${dollars(costUsd)}${unpriced > 0 ? '+' : ''}`;
  return [calls, inputTokens, cached, outputTokens, cost];
}

/** Draws a bar in eighths of a character; any non-zero value is visible. */
function bar(value: number, highest: number): string {
  if (value <= 0 || highest <= 0) return '';
  const eighths = Math.max(1, Math.round((value / highest) * barLength * 8));
  return '█'.repeat(Math.floor(eighths / 8)) + (['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8] ?? '');
}

function dollars(value: number): string {
  const size = Math.abs(value);
  const digits = size === 0 || size >= 0.01 ? 2 : Math.min(9, 1 - Math.floor(Math.log10(size)));
  return `${value < 0 ? '-' : ''}$${size.toFixed(digits)}`;
}
