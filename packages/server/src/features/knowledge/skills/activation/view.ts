import type { AgentConfig } from '@gatehouse/contract';
import type { FenceText } from '../../../../runtime/fence.ts';
import { createMatcher } from './match.ts';
import type { FoundSkill } from '../bundles/root.ts';
import type { StatRow } from '../store.ts';

/** A skill that an agent may use now. */
export interface ActiveSkill {
  readonly name: string;
  readonly description: string;
  readonly promoted: boolean;
  readonly body: string;
  readonly skill: FoundSkill;
}

/** Snapshot of one agent's skills; created again when something changed. */
export interface SkillView {
  readonly key: { readonly config: AgentConfig; readonly local: number; readonly shared: number; readonly standing: number };
  readonly all: readonly { readonly skill: FoundSkill; readonly reasons: readonly string[]; readonly stat: StatRow | undefined }[];
  /** The list for the system prompt. */
  readonly prompt: string | undefined;
  /** `model`: only skills that the model may call; `user`: only those that a user may call. */
  find(name: string, by: 'model' | 'user'): FoundSkill | undefined;
  /** Returns skills that fit a question and do not keep failing. */
  match(question: string, limit: number): readonly ActiveSkill[];
}

const maxListed = 100;
const listedCharacters = 300;

export function buildView(
  key: SkillView['key'],
  deps: {
    /** Later entries override earlier ones of the same name. */
    readonly found: readonly FoundSkill[];
    readonly reasonsFor: (skill: FoundSkill) => readonly string[];
    readonly statOf: (skill: FoundSkill) => StatRow | undefined;
    readonly fence: FenceText;
  },
): SkillView {
  const shadowed = 'a skill of the agent has the same name';
  const own = new Set(deps.found.filter(({ owner }) => owner !== '').map(({ name }) => name));
  const all = deps.found
    .map((skill) => ({
      skill,
      reasons: [...deps.reasonsFor(skill), ...(skill.owner === '' && own.has(skill.name) ? [shadowed] : [])],
      stat: deps.statOf(skill),
    }))
    .toSorted((a, b) => (a.skill.name < b.skill.name ? -1 : a.skill.name > b.skill.name ? 1 : a.skill.owner < b.skill.owner ? 1 : -1));
  const active = new Map(all.filter(({ reasons }) => reasons.length === 0).map((each) => [each.skill.name, each]));
  const candidates = [...active.values()].flatMap(({ skill, stat }): readonly ActiveSkill[] => {
    const { loaded, name, description } = skill;
    if (typeof loaded === 'string' || loaded.manifest.disableModelInvocation || stat?.standing === 'demoted') return [];
    return [{ name, description, promoted: stat?.standing === 'promoted', body: loaded.body, skill }];
  });
  const match = createMatcher(candidates);
  return {
    key,
    all,
    match,
    prompt: listOf(
      [...active.values()].map(({ skill }) => skill),
      deps.fence,
    ),
    find(name, by) {
      const skill = active.get(name)?.skill;
      if (skill === undefined || typeof skill.loaded === 'string') return undefined;
      const { manifest } = skill.loaded;
      return by === 'model' ? (manifest.disableModelInvocation ? undefined : skill) : manifest.userInvocable ? skill : undefined;
    },
  };
}

function listOf(skills: readonly FoundSkill[], fence: FenceText): string | undefined {
  const lines = (own: boolean) =>
    skills
      .filter((skill) => (skill.tier === 'operator') === own && typeof skill.loaded !== 'string' && !skill.loaded.manifest.disableModelInvocation)
      .slice(0, maxListed)
      .map(({ name, description }) => `- ${name}: ${oneLine(description)}`);
  const own = lines(true);
  const others = lines(false);
  if (own.length + others.length === 0) return undefined;
  const parts = ['# Skills\nInstructions for some kinds of work, by name. Get one with the tool "skill" before you do what it is for.'];
  if (own.length > 0) parts.push(own.join('\n'));
  // The description of an untrusted skill is as untrusted as the skill.
  if (others.length > 0) parts.push(`Installed from elsewhere:\n${fence(others.join('\n'), { source: 'skills' })}`);
  return parts.join('\n');
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length <= listedCharacters ? line : `${line.slice(0, listedCharacters - 1).toWellFormed()}…`;
}
