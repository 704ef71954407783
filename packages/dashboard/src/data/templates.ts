import { useLoad } from './use-load.ts';

/** Loads the agent templates, and the code that applies them, on demand. */
export async function loadTemplates() {
  const [{ agentTemplates: templates }, { applyTemplate, writeTemplateFiles }] = await Promise.all([
    import('@gatehouse/contract/agent-templates'),
    import('@gatehouse/client/agent-template'),
  ]);
  return { templates, applyTemplate, writeTemplateFiles };
}

export function useTemplates() {
  return useLoad(['agent templates'], async () => (await loadTemplates()).templates);
}
