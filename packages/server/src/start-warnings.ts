import type { RootConfig } from './config-schema.ts';

/** What the server itself does not warn of: only who starts it knows the file and the log. */
export function startWarnings(
  config: RootConfig,
  context: { readonly offline: boolean; readonly configFile: string; readonly logModules: readonly string[] },
): string[] {
  const warnings: string[] = [];
  if (context.offline)
    warnings.push(
      `No model is connected: the built-in offline model answers. Set a key such as OPENAI_API_KEY in the environment, start a local model server, or fill in "providers" in ${context.configFile}; then start again.`,
    );
  for (const name of Object.keys(config.logging.modules))
    if (!context.logModules.includes(name))
      warnings.push(`logging.modules: there is no module "${name}"; there are ${context.logModules.join(', ')}.`);
  return warnings;
}
