import { holdsIn, type RuleName } from './allowed.ts';
import {
  dotted,
  importedNames,
  isIdentifier,
  loadedModule,
  stringOf,
  type CallExpression,
  type Context,
  type Node,
  type Rule,
  type Visitor,
} from './syntax.ts';

function serverRule(name: RuleName, visitor: (context: Context) => Visitor): Rule {
  return { create: (context) => (holdsIn(name, context.filename) ? visitor(context) : {}) };
}

const clock = serverRule('clock', (context) => {
  const say = (node: Node, what: string): void =>
    context.report({ node, message: `${what} hides the time from tests: take a Clock (kernel/clock.ts) and call clock.now() or clock.monotonic().` });
  const isDate = (node: Node): boolean => isIdentifier(node, 'Date') && context.sourceCode.isGlobalReference(node);
  return {
    CallExpression(node) {
      const member = dotted(node.callee);
      if (member?.property === 'now' && (member.object === 'Date' || member.object === 'performance')) say(node, `${member.object}.now()`);
      if (isDate(node.callee)) say(node, 'Date()');
    },
    NewExpression(node) {
      if (isDate(node.callee) && node.arguments.length === 0) say(node, 'new Date()');
    },
  };
});

const environment = serverRule('environment', (context) => {
  const message = 'Only main.ts passes the environment on: take the value as an argument or add a key to the configuration.';
  return {
    MemberExpression(node) {
      const member = dotted(node);
      if (member?.object === 'process' && member.property === 'env') context.report({ node, message });
    },
    ImportDeclaration(node) {
      if (loadedModule(node) === 'process' && importedNames(node).has('env')) context.report({ node, message });
    },
  };
});

const json = serverRule('json', (context) => ({
  CallExpression(node) {
    const member = dotted(node.callee);
    if (member?.object === 'JSON' && member.property === 'parse') {
      context.report({
        node,
        message:
          'JSON.parse takes any depth: use parseJson(text, { maxDepth }) of kernel/json.ts; for text that this project generates add the file with a reason to tools/oxlint-plugin-house/allowed.ts.',
      });
    }
  },
}));

const clientFunctions = new Map([
  ['http', ['request', 'get']],
  ['https', ['request', 'get']],
  ['net', ['connect', 'createConnection']],
  ['tls', ['connect']],
]);

const isUndici = (module: string | undefined): boolean => module !== undefined && /^undici(?:\/|$)/.test(module);

const network = serverRule('network', (context) => {
  const say = (node: Node, what: string): void =>
    context.report({ node, message: `${what} goes round the checks on outward requests: use the function of kernel/egress.ts.` });
  const inspectGlobal = (node: CallExpression, names: readonly string[]): void => {
    if (isIdentifier(node.callee) && names.includes(node.callee.name) && context.sourceCode.isGlobalReference(node.callee))
      say(node, node.callee.name);
  };
  return {
    CallExpression(node) {
      inspectGlobal(node, ['fetch']);
      const member = dotted(node.callee);
      if (member?.object === 'globalThis' && member.property === 'fetch') say(node, 'fetch');
      if (member && clientFunctions.get(member.object)?.includes(member.property)) say(node, `${member.object}.${member.property}`);
    },
    NewExpression(node) {
      inspectGlobal(node, ['WebSocket', 'EventSource']);
    },
    ImportDeclaration(node) {
      const module = loadedModule(node);
      if (module === undefined) return;
      if (isUndici(module) || module === 'http2') say(node, module);
      const names = importedNames(node);
      for (const name of clientFunctions.get(module) ?? []) if (names.has(name)) say(node, `${name} of node:${module}`);
    },
    ImportExpression(node) {
      if (isUndici(stringOf(node.source))) say(node, 'undici');
    },
  };
});

const childProcess = serverRule('process', (context) => {
  const message =
    'Programs are started by the files named in tools/oxlint-plugin-house/allowed.ts only: call one of them, or add the file with its reason.';
  return {
    ImportDeclaration(node) {
      if (loadedModule(node) === 'child_process') context.report({ node, message });
    },
    ImportExpression(node) {
      if (stringOf(node.source)?.replace(/^node:/, '') === 'child_process') context.report({ node, message });
    },
  };
});

const joining = new Set(['join', 'resolve', 'normalize']);
const isFixed = (node: Node): boolean =>
  stringOf(node) !== undefined || (node.type === 'TemplateLiteral' && (node as Node & { expressions: unknown[] }).expressions.length === 0);

/** Allows paths to grow by fixed names anywhere, but by names from outside only in kernel/safe-path.ts. */
const paths = serverRule('paths', (context) => {
  const locals = new Set<string>();
  const objects = new Set<string>();
  return {
    ImportDeclaration(node) {
      if (!/^path(\/(posix|win32))?$/.test(loadedModule(node) ?? '')) return;
      for (const [name, local] of importedNames(node)) {
        if (joining.has(name)) locals.add(local);
        if (name === 'posix' || name === 'win32') objects.add(local);
      }
      for (const one of node.specifiers) if (!one.imported) objects.add(one.local.name);
    },
    CallExpression(node) {
      const member = dotted(node.callee);
      const joins =
        (isIdentifier(node.callee) && locals.has(node.callee.name)) || (member && objects.has(member.object) && joining.has(member.property));
      if (joins && node.arguments.slice(1).some((argument) => !isFixed(argument))) {
        context.report({ node, message: 'A computed name in a path may lead out of its folder: use kernel/safe-path.ts.' });
      }
    },
  };
});

const exit = serverRule('exit', (context) => ({
  CallExpression(node) {
    const member = dotted(node.callee);
    if (member?.object === 'process' && (member.property === 'exit' || member.property === 'abort')) {
      context.report({
        node,
        message: `process.${member.property}() skips the disposal of open resources: throw, or abort the signal; only daemon.ts may call it.`,
      });
    }
  },
}));

const random = serverRule('random', (context) => ({
  CallExpression(node) {
    const member = dotted(node.callee);
    if (member?.object === 'Math' && member.property === 'random')
      context.report({
        node,
        message: 'Math.random() can be guessed and not replayed: use kernel/ids.ts or node:crypto, or take a random function as an argument.',
      });
  },
}));

/** The named import pulls every locale of zod into a bundle, four times the code. */
const zodNamespace: Rule = {
  create: (context) => ({
    ImportDeclaration(node) {
      if (loadedModule(node) !== 'zod') return;
      if (node.specifiers.some((one) => one.type !== 'ImportNamespaceSpecifier'))
        context.report({ node, message: "Write import * as z from 'zod': the named import puts all of zod's locales into the bundle." });
    },
  }),
};

const ownMocks: Rule = {
  create: (context) => ({
    CallExpression(node) {
      const member = dotted(node.callee);
      if (member?.object !== 'vi' || !['mock', 'doMock', 'unstable_mockModule'].includes(member.property)) return;
      context.report({
        node,
        message: 'Modules are not mocked here: use the public interface with a fake clock, model or network passed as an argument.',
      });
    },
  }),
};

export const rules = {
  clock,
  environment,
  json,
  network,
  'child-process': childProcess,
  paths,
  exit,
  random,
  'zod-namespace': zodNamespace,
  'own-mocks': ownMocks,
} satisfies Record<string, Rule>;
