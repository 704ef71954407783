import type { AgentTemplate } from '@gatehouse/contract/agent-templates';
import type { Client } from './client.ts';
import { NotFoundError } from './errors.ts';

export interface ShapeAgentOptions {
  readonly agentId: string;
  readonly template: AgentTemplate;
  /** All templates: a file that one of them wrote may be replaced. */
  readonly all: readonly AgentTemplate[];
}

export interface ShapedFiles {
  readonly dir: string;
  readonly written: readonly string[];
  /** Files that somebody changed: they stay as they are. */
  readonly kept: readonly string[];
}

/**
 * Sets up the workspace of an agent and writes the prompt files of a template. Files that somebody changed are kept, so that it can be
 * repeated after an interruption, or with another template.
 */
export async function writeTemplateFiles({ call }: Pick<Client, 'call'>, { agentId, template, all }: ShapeAgentOptions): Promise<ShapedFiles> {
  const { dir } = await call('workspace.init', { agentId });
  const { files } = await call('workspace.status', { agentId });
  const written: string[] = [];
  const kept: string[] = [];
  for (const { name, present, untouched } of files) {
    const content = template.files[name];
    if (content === undefined) continue;
    const isOurs = !present || untouched === true;
    const current = isOurs ? undefined : (await call('workspace.readFile', { agentId, filePath: name })).content;
    if (current === content) continue;
    if (current !== undefined && !all.some((one) => one.files[name] === current)) kept.push(name);
    else {
      await call('workspace.writeFile', { agentId, filePath: name, content });
      written.push(name);
    }
  }
  const bootstrap = files.find(({ name }) => name === 'BOOTSTRAP.md');
  if (!template.introduces && bootstrap?.present === true && bootstrap.untouched === true) {
    await call('workspace.deleteFile', { agentId, filePath: 'BOOTSTRAP.md' }).catch((error: unknown) => {
      // The agent may have deleted it meanwhile.
      if (!(error instanceof NotFoundError)) throw error;
    });
  }
  return { dir, written, kept };
}

/** Applies a template to an existing agent; `config` wins over it. The model, and everything else that the template does not name, stays. */
export async function applyTemplate(client: Pick<Client, 'call'>, options: ShapeAgentOptions & { readonly config?: object }): Promise<ShapedFiles> {
  const { agentId, template, config = {} } = options;
  await client.call('agents.update', { agentId, config: { ...template.config, ...config } });
  return await writeTemplateFiles(client, options);
}
