import * as z from 'zod';
import { once } from '../once.ts';
import { method } from '../method.ts';
import { EpochMs } from '../shared/turn.ts';

const Section = once(() => z.string().min(1).max(64).optional().describe('A top-level key of config.yaml; all otherwise.'));
const Key = z.string().min(1).max(512);
const Sha = z.string().regex(/^[0-9a-f]{7,64}$/, 'expected 7 to 64 hexadecimal digits, as config.history lists them');
const Digest = z.string().regex(/^[0-9a-f]{64}$/, 'expected 64 hexadecimal digits');

/** What every change takes. */
const change = {
  ifDigest: Digest.optional().describe('Fails with `conflict` when the document has another digest by now.'),
  confirm: z.boolean().optional().describe('Needed for protected keys, with scope `*`.'),
  dryRun: z.boolean().optional().describe('Validates and returns the diff; changes nothing.'),
};

/** What every change returns. */
const changed = {
  restarting: z.literal(false).describe('No change restarts the daemon on its own; see `restart`.'),
  changed: z.array(z.string()).describe('Keys whose value changed.'),
  restart: z.array(z.string()).describe('Those of `changed` that take effect with `gateway.restart`.'),
  digest: Digest.describe('SHA-256 of the document now; with `dryRun` of the one that it would be.'),
  version: z.int().min(1),
  diff: z.string().optional().describe('Unified, with secrets redacted; only with `dryRun`.'),
  protected: z.array(z.string()).optional().describe('Keys that the change needs `confirm` for; only with `dryRun`.'),
  dryRun: z.literal(true).optional(),
};

const oneOf =
  'Either `section`, with or without a dotted `key` below it, or the whole `path`. Comments, order and layout of everything else in config.yaml stay. The whole document is validated before it is written, as at a start. ' +
  'Keys that decide who may do what (`gateway.tokens`, `gateway.host`, `gateway.port`, `gateway.tls`, `providers`, `agents`, `approvals`, `security`) need `confirm` and scope `*`. Values with `[REDACTED]` are refused.';

const digest = 'f2ca1bb6c7e907d06dafe4687e579fce76b37e4e93b7605022da52e6ccc26fd2';
const exampleChange = { restarting: false as const, changed: ['logging.level'], restart: [], digest, version: 2 };

export const config = {
  'config.read': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the effective configuration, or one section of it; secret values are redacted.',
    description: 'With `section` the result has `section` and its `config`; without it `config` has every section and `sections` names them.',
    params: () => z.strictObject({ section: Section(), written: z.boolean().optional().describe('Adds `written`.') }),
    result: () =>
      z.strictObject({
        config: z.unknown(),
        written: z
          .unknown()
          .optional()
          .describe('What config.yaml itself says: without defaults, with references such as `${NAME}`; absent when it is not valid YAML.'),
        sections: z.array(z.string()),
        section: z.string().optional(),
        digest: Digest.describe('SHA-256 of config.yaml, for `ifDigest`.'),
        restartNeeded: z.array(z.string()).describe('Keys that were changed in the file and need a restart; `config` has the values in force.'),
        fault: z.string().optional().describe('Why the file cannot be used: the configuration in force is an earlier one.'),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { section: 'routing' },
        result: { section: 'routing', config: { defaultAgentId: 'default' }, sections: ['routing'], digest, restartNeeded: [] },
      },
    ],
    since: '0.1.0',
  }),
  'config.get': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns one section as it is in force, by its name; without `section` a summary.',
    description:
      'For the owner on the socket of the home folder nothing is redacted, `text` adds config.yaml itself, and the call is in the audit; over the network it redacts like `config.read`. An unknown section returns the summary.',
    params: () => z.strictObject({ section: Section(), text: z.boolean().optional().describe('Adds `text` and `digest` of config.yaml.') }),
    result: () => z.record(z.string(), z.unknown()),
    errors: ['denied'],
    examples: [{ params: { section: 'routing' }, result: { routing: { defaultAgentId: 'default' } } }],
    since: '0.1.0',
  }),
  'config.set': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Writes one value of config.yaml; null removes the key.',
    description: oneOf,
    params: () => z.strictObject({ section: Section(), key: Key.optional(), path: Key.optional(), value: z.unknown(), ...change }),
    result: () =>
      z.strictObject({
        ok: z.literal(true),
        previous: z.unknown().optional().describe('The value that config.yaml had, redacted; absent when it had none.'),
        ...changed,
      }),
    errors: ['conflict', 'precondition_failed', 'denied', 'not_found', 'unavailable'],
    examples: [{ params: { section: 'logging', key: 'level', value: 'debug' }, result: { ok: true, previous: 'info', ...exampleChange } }],
    since: '0.1.0',
  }),
  'config.schema': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the JSON Schema of the configuration, or of one section.',
    description:
      '`x-gatehouse-apply` of a key holds for all keys below it that have none: `live`, a change takes effect at once; `restart`, after a restart.',
    params: () => z.strictObject({ section: Section() }),
    result: () => z.strictObject({ schema: z.looseObject({}), sections: z.array(z.string()), section: z.string().optional() }),
    errors: ['not_found'],
    examples: [{ params: { section: 'routing' }, result: { section: 'routing', schema: { type: 'object' }, sections: ['routing'] } }],
    since: '0.1.0',
  }),
  'config.patch': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Merges a value into config.yaml: objects merge, everything else replaces, null removes a key.',
    description: `${oneOf} \`changes\` instead makes several changes in this order, all or none.`,
    params: () =>
      z.strictObject({
        section: Section(),
        key: Key.optional(),
        path: Key.optional(),
        value: z.unknown().optional(),
        changes: z
          .array(z.strictObject({ path: Key, value: z.unknown() }))
          .min(1)
          .max(500)
          .optional(),
        ...change,
      }),
    result: () =>
      z.strictObject({
        patched: z.boolean().describe('False with `dryRun`.'),
        section: z.string().optional().describe('Absent with `changes`, as are `key` and `value`.'),
        key: z.string().optional(),
        value: z.unknown().optional().describe('The value that config.yaml has now, redacted; absent when the key was removed.'),
        ...changed,
      }),
    errors: ['conflict', 'precondition_failed', 'denied', 'not_found', 'unavailable'],
    examples: [
      {
        params: { section: 'logging', value: { level: 'debug' } },
        result: { patched: true, section: 'logging', value: { level: 'debug' }, ...exampleChange },
      },
    ],
    since: '0.1.0',
  }),
  'config.apply': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Replaces one section of config.yaml, or the whole text of the file.',
    description: `With \`section\` and \`value\` the section; what stays the same keeps its comments and layout. With \`text\` the file, which needs \`confirm\` and scope \`*\`. ${oneOf}`,
    params: () =>
      z.strictObject({
        section: Section(),
        value: z.record(z.string(), z.unknown()).optional(),
        text: z.string().max(1_048_576).optional().describe('The whole of config.yaml.'),
        ...change,
      }),
    result: () => z.strictObject({ applied: z.boolean().describe('False with `dryRun`.'), section: z.string().optional(), ...changed }),
    errors: ['conflict', 'precondition_failed', 'denied', 'not_found', 'unavailable'],
    examples: [{ params: { section: 'logging', value: { level: 'debug' } }, result: { applied: true, section: 'logging', ...exampleChange } }],
    since: '0.1.0',
  }),
  'config.history': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the versions of config.yaml, newest first.',
    description: 'A version is stored with each change, and with each edit by hand that was found. `sha` is the SHA-256 of its text.',
    params: () => z.strictObject({ limit: z.int().min(1).max(200).default(10), section: Section() }),
    result: () =>
      z.strictObject({
        entries: z.array(
          z.strictObject({
            sha: Digest,
            version: z.int().min(1),
            timestamp: EpochMs,
            from: z
              .enum(['rpc', 'cli', 'file', 'rollback', 'agents'])
              .describe('`cli`: the owner’s socket. `file`: an edit by hand. `agents`: `agents.*`.'),
            metadata: z.strictObject({
              section: z.string().optional(),
              key: z.string().optional(),
              user: z.string().describe('Id of the principal; `owner` for an edit by hand.'),
              traceId: z.string().optional(),
              summary: z.string(),
            }),
            message: z.string().describe('The summary, with its section and key.'),
          }),
        ),
      }),
    examples: [
      {
        params: { limit: 1 },
        result: {
          entries: [
            {
              sha: digest,
              version: 2,
              timestamp: 1790000000000,
              from: 'rpc',
              metadata: { section: 'logging', key: 'level', user: 'token:ops', summary: 'config.set' },
              message: 'logging.level: config.set',
            },
          ],
        },
      },
    ],
    since: '0.1.0',
  }),
  'config.diff': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns what changed from a version to config.yaml as it is now, as a unified diff; secrets are redacted.',
    description: 'Without `sha` the last change.',
    params: () => z.strictObject({ sha: Sha.optional(), to: Sha.optional().describe('Another version to compare with, instead of config.yaml.') }),
    result: () => z.strictObject({ diff: z.string() }),
    errors: ['not_found'],
    examples: [
      { params: {}, result: { diff: '--- version 1\n+++ version 2\n@@ -1,1 +1,1 @@\n-logging: { level: info }\n+logging: { level: debug }\n' } },
    ],
    since: '0.1.0',
  }),
  'config.rollback': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Writes the text of an earlier version, byte for byte, as a new version.',
    description:
      'The text is validated as at a start. An edit by hand that was not used yet is kept as a version first. With PostgreSQL the keys of this machine (`gateway.host`, `gateway.port`, `gateway.tls`, `gateway.web.distPath`, `storage`) stay. ' +
      'Protected keys that differ need `confirm` and scope `*`.',
    params: () => z.strictObject({ sha: Sha, ...change }),
    result: () =>
      z.strictObject({
        rolledBack: z.boolean().describe('False with `dryRun`.'),
        sha: Digest,
        newCommitSha: z.string().describe('SHA-256 of the new version; empty when the document has the text already.'),
        ...changed,
      }),
    errors: ['not_found', 'conflict', 'precondition_failed', 'denied', 'unavailable'],
    examples: [{ params: { sha: 'f2ca1bb6' }, result: { rolledBack: true, sha: digest, newCommitSha: digest, ...exampleChange } }],
    since: '0.1.0',
  }),
  'config.gc': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Deletes versions of config.yaml from before a time; the newest one stays.',
    params: () => z.strictObject({ olderThan: z.iso.datetime({ offset: true }).optional().describe('All but the newest one otherwise.') }),
    result: () =>
      z.strictObject({
        gc: z.literal(true),
        squashed: z.int().min(0).describe('How many were deleted.'),
        newRootSha: z.string().optional().describe('The oldest version that is left.'),
      }),
    examples: [{ params: { olderThan: '2026-01-01T00:00:00Z' }, result: { gc: true, squashed: 12, newRootSha: digest } }],
    since: '0.1.0',
  }),
};
