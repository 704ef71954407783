import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { EpochMs } from '../shared/turn.ts';

export const LogLevel = z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace']).meta({ id: 'LogLevel' });

/** A line of the daemon's log. */
export const LogLine = once(() =>
  z
    .strictObject({
      id: z.int().min(0).describe('Grows from line to line, also over restarts.'),
      timestamp: EpochMs,
      level: LogLevel,
      module: z.string().optional(),
      message: z.string(),
      fields: z.record(z.string(), z.json()).describe('Everything else of the line, secrets redacted.'),
    })
    .meta({ id: 'LogLine' }),
);
export type LogLine = z.output<ReturnType<typeof LogLine>>;

const moduleName = z.string().min(1).max(64);

export const daemon = {
  'daemon.logs': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the newest lines of the log, oldest first.',
    description:
      'The daemon keeps the newest 500 lines, at most 256 KiB, in memory; lines below the level in force are never written. The event `daemon:log` has those that follow. Not for tokens limited to some agents.',
    params: () =>
      z.strictObject({
        afterId: z.int().min(0).optional().describe('Only lines after this one.'),
        level: LogLevel.optional().describe('Only lines of this level or above.'),
        module: moduleName.optional(),
        limit: z.int().min(1).max(500).default(200),
      }),
    result: () => z.strictObject({ lines: z.array(LogLine()), modules: z.array(z.string()).describe('Names for `module`.') }),
    errors: ['denied'],
    examples: [
      {
        params: { level: 'warn', limit: 1 },
        result: {
          lines: [
            {
              id: 1_790_000_000_000_007,
              timestamp: 1_790_000_000_000,
              level: 'warn',
              module: 'models',
              message: 'A model provider refused the credentials',
              fields: { provider: 'openai', status: 401 },
            },
          ],
          modules: ['gateway', 'models'],
        },
      },
    ],
    since: '0.1.0',
  }),
  'daemon.setLogLevel': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Changes the log level of the whole daemon or of one module, until the next start.',
    params: () => z.strictObject({ level: LogLevel, module: moduleName.optional() }),
    result: () =>
      z.strictObject({
        updated: z.literal(true),
        level: LogLevel,
        scope: z.enum(['global', 'module']),
        module: z.string().optional(),
        persistent: z.literal(false),
      }),
    errors: ['not_found'],
    examples: [{ params: { level: 'debug' }, result: { updated: true, level: 'debug', scope: 'global', persistent: false } }],
    since: '0.1.0',
  }),
};
