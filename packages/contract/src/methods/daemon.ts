import * as z from 'zod';
import { method } from '../method.ts';

export const LogLevel = z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace']).meta({ id: 'LogLevel' });

export const daemon = {
  'daemon.setLogLevel': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Changes the log level of the whole daemon or of one module, until the next start.',
    params: () => z.strictObject({ level: LogLevel, module: z.string().min(1).max(64).optional() }),
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
