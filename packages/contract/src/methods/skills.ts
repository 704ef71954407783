import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

export const SkillName = once(() =>
  z
    .string()
    .max(64)
    .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'expected 1 to 64 lower-case letters and digits, with single "-" between them')
    .meta({ id: 'SkillName' }),
);
export const SkillScope = once(() => z.enum(['local', 'shared']).meta({ id: 'SkillScope' }));
export const SkillVerdict = once(() => z.enum(['safe', 'caution', 'dangerous']).meta({ id: 'SkillVerdict' }));

/** One finding of vetting: where, by which rule, and what it means; never the text itself. */
export const SkillFinding = once(() =>
  z
    .strictObject({
      file: z.string(),
      line: z.int().min(0).describe('1-based; 0 when it concerns the file as a whole.'),
      rule: z.string(),
      severity: z.enum(['CRITICAL', 'WARN']),
      category: z.string(),
      description: z.string(),
    })
    .meta({ id: 'SkillFinding' }),
);
export type SkillFinding = z.output<ReturnType<typeof SkillFinding>>;

/** A skill as an agent sees it. */
export const Skill = once(() =>
  z
    .strictObject({
      name: SkillName(),
      description: z.string(),
      scope: SkillScope(),
      location: z.string().describe('Path of its SKILL.md, below the workspace of the agent or below the shared folder.'),
      source: z.enum(['workspace', 'local', 'uploaded', 'created', 'imported']).describe('`workspace` and `local`: added to the folder by hand.'),
      state: z.enum(['active', 'ineligible', 'rejected']).describe('`rejected`: it did not pass vetting and is not loaded.'),
      reasons: z.array(z.string()).describe('Why it is not active.'),
      disableModelInvocation: z.boolean().optional(),
      userInvocable: z.boolean(),
      verdict: SkillVerdict(),
      findings: z.array(SkillFinding()),
      fileCount: z.int().min(0),
      sha256: z.string().describe('Digest of all its files with their paths.'),
      standing: z
        .enum(['neutral', 'promoted', 'demoted'])
        .describe('Derived from how turns that used it ended; a demoted skill is not placed before questions automatically.'),
      uses: z.int().min(0),
      failures: z.int().min(0),
      provenance: z
        .strictObject({
          tier: z.enum(['operator', 'community', 'agent-authored']),
          forced: z.boolean(),
          url: z.string().optional(),
          by: z.string().describe('Principal that installed it.'),
          at: EpochMs,
        })
        .optional()
        .describe('Absent for skills added to the folder by hand, and for those changed there since.'),
    })
    .meta({ id: 'Skill' }),
);
export type Skill = z.output<ReturnType<typeof Skill>>;

const target = once(() => ({
  name: SkillName(),
  scope: SkillScope().default('local').describe('`shared` is for all agents; only the default agent writes there.'),
  agentId: AgentId.optional().describe('Whose skill it is; the default agent when absent.'),
}));
const force = once(() => z.boolean().default(false).describe('Accepts what vetting asked to confirm. It never accepts what vetting rejects.'));
const content = once(() => z.string().min(1).max(1_048_576).describe('The whole SKILL.md: YAML between two lines of `---`, then Markdown.'));
const gate =
  'Every file, the structure and the manifest are vetted before anything is written, and exactly the vetted bytes are written. A refusal is an error whose message begins with `[skill_vet_confirm:<verdict>]` (repeat the same call with `force: true`) or `[skill_vet_rejected:<verdict>]` (final).';

const exampleContent =
  '---\nname: release-notes\ndescription: Writes release notes from a list of commits.\n---\nGroup the commits by kind, then write one line for each.\n';
const path = '/home/ada/.gatehouse/workspaces/default/skills/release-notes';
const written = once(() => ({
  path: z.string().describe('The folder that was written.'),
  verdict: SkillVerdict(),
  sha256: z.string(),
  findings: z.array(SkillFinding()).describe('Findings that were accepted.'),
}));
const vetted = { verdict: 'safe' as const, sha256: `sha256:${'0'.repeat(64)}`, findings: [] };

export const skills = {
  'skills.list': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists the skills of one agent: its own and the shared ones, with why one is not active and what vetting found.',
    description: 'An unknown agent has none.',
    params: () => z.strictObject({ agentId: AgentId.optional().describe('The default agent when absent.') }),
    result: () => z.strictObject({ skills: z.array(Skill()), total: z.int().min(0) }),
    examples: [
      {
        params: {},
        result: {
          skills: [
            {
              name: 'release-notes',
              description: 'Writes release notes from a list of commits.',
              scope: 'local',
              location: 'skills/release-notes/SKILL.md',
              source: 'created',
              state: 'active',
              reasons: [],
              userInvocable: true,
              verdict: 'safe',
              findings: [],
              fileCount: 1,
              sha256: vetted.sha256,
              standing: 'neutral',
              uses: 0,
              failures: 0,
              provenance: { tier: 'operator', forced: false, by: 'token:ops', at: 1790000000000 },
            },
          ],
          total: 1,
        },
      },
    ],
    since: '0.1.0',
  }),
  'skills.upload': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Installs a skill from its files.',
    description: gate,
    params: () =>
      z.strictObject({
        ...target(),
        files: z
          .array(z.strictObject({ path: z.string().min(1).max(1024), content: z.string().max(33_554_432) }))
          .min(1)
          .max(1000)
          .describe('Paths with "/" below the folder of the skill; SKILL.md must be among them.'),
        force: force(),
      }),
    result: () => z.strictObject({ ok: z.literal(true), name: SkillName(), fileCount: z.int(), ...written() }),
    errors: ['conflict', 'denied', 'not_found', 'precondition_failed'],
    examples: [
      {
        params: { name: 'release-notes', files: [{ path: 'SKILL.md', content: exampleContent }] },
        result: { ok: true, name: 'release-notes', fileCount: 1, path, ...vetted },
      },
    ],
    since: '0.1.0',
  }),
  'skills.import': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Installs a skill from a folder of a public repository.',
    description: `${gate} Third-party skills are in the strictest tier. The name is that of the manifest. \`force\` is valid for the files that were shown: when the repository changed since the refusal, confirmation is requested again.`,
    params: () =>
      z.strictObject({
        url: z.string().min(1).max(2048).describe('https://github.com/{owner}/{repo}/tree/{branch}/{path}'),
        scope: target().scope,
        agentId: target().agentId,
        force: force(),
      }),
    result: () => z.strictObject({ ok: z.literal(true), name: SkillName(), fileCount: z.int(), ...written() }),
    errors: ['conflict', 'denied', 'not_found', 'precondition_failed', 'payload_too_large', 'timeout', 'unavailable'],
    examples: [
      {
        params: { url: 'https://github.com/ada/skills/tree/main/release-notes' },
        result: { ok: true, name: 'release-notes', fileCount: 3, path, ...vetted },
      },
    ],
    since: '0.1.0',
  }),
  'skills.create': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Creates a skill of one file.',
    description: gate,
    params: () => z.strictObject({ ...target(), content: content(), force: force() }),
    result: () => z.strictObject({ ok: z.literal(true), name: SkillName(), ...written() }),
    errors: ['conflict', 'denied', 'not_found', 'precondition_failed'],
    examples: [{ params: { name: 'release-notes', content: exampleContent }, result: { ok: true, name: 'release-notes', path, ...vetted } }],
    since: '0.1.0',
  }),
  'skills.update': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Replaces the SKILL.md of a skill; its other files stay, and are vetted with it.',
    description: `${gate} An imported skill keeps its tier.`,
    params: () => z.strictObject({ ...target(), content: content(), force: force() }),
    result: () => z.strictObject({ ok: z.literal(true), name: SkillName(), ...written() }),
    errors: ['denied', 'not_found', 'precondition_failed'],
    examples: [{ params: { name: 'release-notes', content: exampleContent }, result: { ok: true, name: 'release-notes', path, ...vetted } }],
    since: '0.1.0',
  }),
  'skills.delete': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Deletes a skill with all its files.',
    params: () => z.strictObject(target()),
    result: () => z.strictObject({ ok: z.literal(true) }),
    errors: ['denied', 'not_found', 'precondition_failed'],
    examples: [{ params: { name: 'release-notes' }, result: { ok: true } }],
    since: '0.1.0',
  }),
};
