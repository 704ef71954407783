import { type Route, type RouteName, routes } from '@gatehouse/contract';
import { RegExpRouter } from 'hono/router/reg-exp-router';
import { declaredHooksPath } from './routes/hooks.ts';

export interface RouteMatch {
  readonly name: RouteName;
  readonly route: Route;
  /** Undecoded: each user of a part decodes it once. */
  readonly params: Readonly<Record<string, string>>;
}

export interface Router {
  /** Returns the route, or the methods that the path accepts: none for an unknown path. `HEAD` is answered where `GET` is. */
  match(method: string, path: string): RouteMatch | { readonly allow: readonly string[] };
}

/**
 * Matches the raw path, exactly as sent: `//health`, `/health/` or `/%68ealth` are other paths, and no encoding can
 * lead to a route that an earlier check did not see.
 */
export function createRouter({ web, hooksPath = declaredHooksPath }: { readonly web: boolean; readonly hooksPath?: string }): Router {
  const router = new RegExpRouter<{ readonly name: RouteName; readonly parts: readonly string[] }>();
  const methods = new Set<string>();
  /** Routes without a variable part, which are nearly all, by method and path. */
  const exact = new Map<string, RouteMatch>();
  for (const [name, route] of Object.entries(routes) as [RouteName, Route][]) {
    // With the web part disabled there is no dashboard and nothing below /api (http-gateway.md §4.6), except what monitors probe.
    if (!web && name !== 'apiHealth' && (/^\/(api|assets)\//.test(route.path) || route.path === '/' || route.path === '/frame')) continue;
    methods.add(route.method);
    const path = route.signed === true ? `${hooksPath}${route.path.slice(declaredHooksPath.length)}` : route.path;
    // A fixed part in the position of a variable one would be ambiguous to the router.
    if (!/[:*]/.test(path)) exact.set(`${route.method} ${path}`, { name, route, params: {} });
    else
      router.add(route.method, path.replace(/\*(\w+)$/, ':$1{.+}'), { name, parts: [...path.matchAll(/[:*](\w+)/g)].map(([, part = '']) => part) });
  }

  function find(method: string, path: string): RouteMatch | undefined {
    const known = exact.get(`${method} ${path}`);
    if (known !== undefined) return known;
    const [handlers, values] = router.match(method, path);
    const hit = handlers[0];
    if (hit === undefined) return undefined;
    const [{ name, parts }, indexes] = hit;
    const params: Record<string, string> = {};
    for (const part of parts) {
      const index = indexes[part];
      const value = typeof index === 'number' ? values?.[index] : index;
      if (value !== undefined) params[part] = value;
    }
    return { name, route: routes[name], params };
  }

  return {
    match(method, path) {
      const asked = method === 'HEAD' ? 'GET' : method;
      const match = find(asked, path);
      if (match !== undefined) return match;
      const allow = [...methods].filter((other) => find(other, path) !== undefined);
      return { allow: allow.includes('GET') ? [...allow, 'HEAD'] : allow };
    },
  };
}
