import type { Client } from '@gatehouse/client';
import type { ShapedFiles } from '@gatehouse/client/agent-template';
import type { AgentTemplate } from '@gatehouse/contract/agent-templates';
import { CliError, describeFailure, usageError } from '../failure.ts';
import { nearest } from '../nearest.ts';

export interface FoundTemplate {
  readonly chosen: AgentTemplate;
  /** Writes its prompt files; files that somebody changed are kept. */
  writeFiles(client: Client, agentId: string): Promise<ShapedFiles>;
}

/** Finds an agent template by its id. */
export async function findTemplate(id: string): Promise<FoundTemplate> {
  // Loaded on demand: other commands do without the prompts.
  const [{ agentTemplates: all }, { writeTemplateFiles }] = await Promise.all([
    import('@gatehouse/contract/agent-templates'),
    import('@gatehouse/client/agent-template'),
  ]);
  const chosen = all.find((one) => one.id === id);
  if (chosen !== undefined)
    return { chosen, writeFiles: (client, agentId) => write(agentId, () => writeTemplateFiles(client, { agentId, template: chosen, all })) };
  const ids = all.map((one) => one.id);
  const meant = nearest(id, ids);
  throw usageError(`Unknown template ${JSON.stringify(id)}: expected ${ids.join(', ')}.`, meant && `Did you mean \`--template ${meant}\`?`);

  /** The agent exists by now; only its files are missing. */
  async function write(agentId: string, run: () => Promise<ShapedFiles>): Promise<ShapedFiles> {
    try {
      return await run();
    } catch (error) {
      const { message, exitCode } = describeFailure(error);
      throw new CliError(`The agent ${agentId} has the settings of the template, but not all of its prompt files: ${message}`, {
        exitCode,
        hint: `\`gatehouse agents update ${agentId} --template ${id}\` completes it.`,
        cause: error,
      });
    }
  }
}

export function shapedText({ written, kept }: ShapedFiles): string[] {
  return [
    ...(written.length === 0 ? [] : [`Wrote ${written.join(' and ')}.`]),
    ...(kept.length === 0 ? [] : [`Kept ${kept.join(' and ')} as you changed ${kept.length === 1 ? 'it' : 'them'}.`]),
  ];
}
