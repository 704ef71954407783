import type { Agent } from './api.ts';

/** Returns the models that an agent names for its turns; undefined stands for the default model. */
export function modelNamesOf({ model, fallbackModels, operationModels }: Agent['config']): readonly (string | undefined)[] {
  return [model, ...fallbackModels, ...Object.values(operationModels).map((operation) => operation.model)];
}

/** Returns the models that an agent names for any of its turns, heartbeats included. */
export const allModelNamesOf = ({ config }: Agent): readonly (string | undefined)[] => [
  ...modelNamesOf(config),
  ...(config.heartbeat.model === undefined ? [] : [config.heartbeat.model]),
];
