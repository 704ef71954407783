import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { EpochMs } from '../shared/turn.ts';

/** Name of a secret, as `${NAME}` in config.yaml refers to it. */
export const SecretName = once(() =>
  z
    .string()
    .max(256)
    .regex(/^[A-Z][A-Z0-9_]*$/, 'expected an upper-case letter, then upper-case letters, digits and "_"'),
);
/** Value of a secret. */
export const SecretValue = once(() =>
  z
    .string()
    .min(1)
    .max(8192)
    .refine((value) => value.isWellFormed() && !value.includes('\0'), 'expected Unicode text without U+0000')
    .refine((value) => !value.includes('[REDACTED'), 'expected a value, found the marker of a redacted one')
    .meta({ secret: true }),
);
const Restart = once(() => z.array(z.string()).describe('Keys of config.yaml that change with it and need a restart; the others are in force.'));
const NotApplied = once(() =>
  z.string().optional().describe('Why the configuration could not be read again: the secret is stored, and what is in force stays.'),
);

export const env = {
  'env.set': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Stores a secret, or replaces its value, for `${NAME}` in config.yaml; takes effect at once wherever a key can.',
    description:
      'A variable of the environment wins over a secret of the same name. A value that makes the configuration invalid is refused with `precondition_failed`, as is every write while `secrets.readOnly` is set. At most 5 secrets are set or removed per minute, over all daemons of the installation.',
    params: () =>
      z.strictObject({
        key: SecretName(),
        value: SecretValue(),
        provider: z.string().min(1).max(64).optional().describe('The service that the secret is for; an earlier one stays when absent.'),
        description: z.string().min(1).max(256).optional().describe('What it is for; an earlier one stays when absent.'),
        expiresAt: EpochMs.optional().describe('When the value ends at its service: `env.list` shows it, and the daemon keeps using it.'),
      }),
    result: () =>
      z.strictObject({
        set: z.literal(true),
        key: SecretName(),
        storage: z.literal('encrypted'),
        restarting: z.literal(false),
        shadowed: z.literal(true).optional().describe('A variable of the environment has this name, and wins.'),
        restart: Restart(),
        notApplied: NotApplied(),
      }),
    errors: ['precondition_failed', 'conflict', 'rate_limited'],
    examples: [
      {
        params: { key: 'OPENAI_API_KEY', value: 'sk-example', description: 'Chat models' },
        result: { set: true, key: 'OPENAI_API_KEY', storage: 'encrypted', restarting: false, restart: [] },
      },
    ],
    since: '0.1.0',
  }),
  'env.list': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the names of the stored secrets and where they are used; values are never returned.',
    description: 'At most 30 calls per minute.',
    params: () =>
      z.strictObject({
        filter: z.string().min(1).max(256).optional().describe('Names to list; `*` stands for any characters, case does not matter.'),
        limit: z.int().min(1).max(500).default(100),
      }),
    result: () =>
      z.strictObject({
        secrets: z.array(
          z.strictObject({
            name: SecretName(),
            source: z.literal('secretstore'),
            provider: z.string().optional(),
            description: z.string().optional(),
            createdAt: EpochMs,
            updatedAt: EpochMs,
            lastUsedAt: EpochMs.optional().describe('Accurate to a minute.'),
            usageCount: z.int().min(0).describe('How often a configuration that uses it came in force, or a search for keys of providers found it.'),
            expiresAt: EpochMs.optional(),
            usedBy: z.array(z.string()).describe('Keys of config.yaml that refer to it.'),
            shadowed: z.literal(true).optional().describe('A variable of the environment has this name, and wins.'),
            unreadable: z.literal(true).optional().describe('It was sealed with another install key: set it again.'),
          }),
        ),
        total: z.int().min(0).describe('Secrets that the filter selects, listed or not.'),
        truncated: z.boolean(),
      }),
    errors: ['rate_limited'],
    examples: [
      {
        params: { filter: 'OPENAI*' },
        result: {
          secrets: [
            {
              name: 'OPENAI_API_KEY',
              source: 'secretstore',
              createdAt: 1790000000000,
              updatedAt: 1790000000000,
              usageCount: 1,
              usedBy: ['providers.openai.apiKey'],
            },
          ],
          total: 1,
          truncated: false,
        },
      },
    ],
    since: '0.1.0',
  }),
  'env.remove': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Removes a stored secret that the configuration does not use.',
    description: 'Refused with `precondition_failed` while keys of config.yaml refer to it and the environment has no variable of its name.',
    params: () => z.strictObject({ key: SecretName() }),
    result: () => z.strictObject({ removed: z.literal(true), key: SecretName() }),
    errors: ['not_found', 'precondition_failed', 'rate_limited'],
    examples: [{ params: { key: 'OLD_KEY' }, result: { removed: true, key: 'OLD_KEY' } }],
    since: '0.1.0',
  }),
};
