import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { readFileInside } from '../../../kernel/safe-path.ts';
import type { Tool, ToolContext, ToolResult } from '../../../runtime/tool.ts';
import { textOf } from './bundles/bundle.ts';
import { fileDigest } from './bundles/read-bundle.ts';
import type { FoundSkill } from './bundles/root.ts';

const args = once(() =>
  z.strictObject({
    name: z.string().min(1).max(64).describe('Name of the skill, as listed.'),
    file: z.string().min(1).max(1024).optional().describe('Another text file of the skill, by its path in it.'),
  }),
);

const maxNamedFiles = 50;

export interface SkillToolDeps {
  /** An active skill that the model may call. */
  readonly find: (agentId: string, name: string) => FoundSkill | undefined;
  readonly used: (context: ToolContext, skill: FoundSkill) => void;
  /** The file differs from what was vetted. */
  readonly changed: (skill: FoundSkill) => void;
  readonly maxFileBytes: () => number;
}

/** `skill`: the instructions of a skill, or one of its other files. */
export function createSkillTool({ find, used, changed, maxFileBytes }: SkillToolDeps): Tool<ReturnType<typeof args>> {
  function result({ tier, name }: FoundSkill, content: string): ToolResult {
    return tier === 'operator' ? { content } : { content, outside: { source: `skill ${name}` } };
  }

  return {
    name: 'skill',
    description: 'Returns the instructions of a skill from the list of skills, or a file that they name. Call it before you do what a skill is for.',
    args: args(),
    risk: 'read',
    effect: 'pure',
    timeoutMs: 10_000,
    readsPrivate: false,
    describe: ({ name, file }) => (file === undefined ? `skill ${name}` : `skill ${name}: ${file}`),
    async run({ name, file }, context) {
      const skill = find(context.agentId, name);
      if (skill === undefined || typeof skill.loaded === 'string') throw new AppError('not_found', `There is no skill ${JSON.stringify(name)}`);
      const { body, files, manifest } = skill.loaded;
      if (file === undefined) {
        used(context, skill);
        const names = [...files.keys()];
        const more = names.length > maxNamedFiles ? `, and ${names.length - maxNamedFiles} more` : '';
        const listed = names.length === 0 ? '' : `\n\nFiles of this skill: ${names.slice(0, maxNamedFiles).join(', ')}${more}`;
        const tools = manifest.allowedTools.length === 0 ? '' : `\n\nTools that it is written for: ${manifest.allowedTools.join(', ')}`;
        return result(skill, `${body}${tools}${listed}`);
      }
      const digest = files.get(file);
      if (digest === undefined) throw new AppError('not_found', `The skill ${name} has no text file ${JSON.stringify(file)}`);
      const bytes = await readFileInside(skill.place.base, [...skill.place.within, file].join('/'), { maxBytes: maxFileBytes() });
      // Only what was vetted is shown, even if the folder was changed since.
      if (fileDigest(bytes) !== digest) {
        changed(skill);
        throw new AppError('precondition_failed', `The file ${JSON.stringify(file)} was changed and is being vetted again; try later`);
      }
      return result(skill, textOf(bytes) ?? '');
    },
  };
}
