import type { ResponseRequest } from '@gatehouse/contract';

type Tool = NonNullable<ResponseRequest['tools']>[number];
type FunctionTool = Extract<Tool, { type: 'function' }>;
interface Named {
  readonly name: string;
  readonly namespace?: string | null | undefined;
}

/** Returns the name under which the model is offered a function of a namespace. */
export function offeredName({ name, namespace }: Named): string {
  return namespace == null ? name : `${namespace}${namespace.endsWith('__') ? '' : '__'}${name}`;
}

/** Returns the functions of the request, including those of its namespaces. */
export function functionsOf({ tools }: Pick<ResponseRequest, 'tools'>): FunctionTool[] {
  return (tools ?? []).flatMap((tool) =>
    tool.type === 'function' ? [tool] : tool.tools.map((inner) => ({ ...inner, name: offeredName({ name: inner.name, namespace: tool.name }) })),
  );
}

/** Maps the name that a function was offered under to the client's name for it. */
export function createCallNames({
  tools,
}: Pick<ResponseRequest, 'tools'>): (offered: string) => { readonly name: string; readonly namespace?: string } {
  const grouped = new Map<string, { readonly name: string; readonly namespace: string }>();
  for (const tool of tools ?? [])
    if (tool.type === 'namespace')
      for (const { name } of tool.tools) grouped.set(offeredName({ name, namespace: tool.name }), { name, namespace: tool.name });
  return (offered) => grouped.get(offered) ?? { name: offered };
}
