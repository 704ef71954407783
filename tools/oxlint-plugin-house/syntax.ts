/** The parts of the syntax tree and of the linter's interface that the rules read. */
export interface Node {
  readonly type: string;
}
export interface Identifier extends Node {
  readonly type: 'Identifier';
  readonly name: string;
}
export interface Literal extends Node {
  readonly value: unknown;
}
export interface MemberExpression extends Node {
  readonly object: Node;
  readonly property: Node;
  readonly computed: boolean;
}
export interface CallExpression extends Node {
  readonly callee: Node;
  readonly arguments: readonly Node[];
}
export interface ImportDeclaration extends Node {
  readonly source: Literal;
  readonly importKind?: 'type' | 'value';
  readonly specifiers: readonly (Node & { readonly local: Identifier; readonly imported?: Node; readonly importKind?: 'type' | 'value' })[];
}
export interface ImportExpression extends Node {
  readonly source: Node;
}

export interface Context {
  readonly filename: string;
  readonly sourceCode: { isGlobalReference(node: Node): boolean };
  report(problem: { readonly node: Node; readonly message: string }): void;
}
export interface Visitor {
  CallExpression?(node: CallExpression): void;
  NewExpression?(node: CallExpression): void;
  MemberExpression?(node: MemberExpression): void;
  ImportDeclaration?(node: ImportDeclaration): void;
  ImportExpression?(node: ImportExpression): void;
}
export interface Rule {
  create(context: Context): Visitor;
}

export function isIdentifier(node: Node, name?: string): node is Identifier {
  return node.type === 'Identifier' && (name === undefined || (node as Identifier).name === name);
}

/** `object.property`, also written `object['property']`; undefined for anything else. */
export function dotted(node: Node): { readonly object: string; readonly property: string; readonly root: Node } | undefined {
  if (node.type !== 'MemberExpression') return undefined;
  const { object, property, computed } = node as MemberExpression;
  if (!isIdentifier(object)) return undefined;
  const name = computed ? stringOf(property) : isIdentifier(property) ? property.name : undefined;
  return name === undefined ? undefined : { object: object.name, property: name, root: object };
}

export function stringOf(node: Node): string | undefined {
  const value = node.type === 'Literal' ? (node as Literal).value : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** Returns the module that a declaration loads at run time; undefined when only types are imported. */
export function loadedModule(node: ImportDeclaration): string | undefined {
  const typesOnly = node.importKind === 'type' || (node.specifiers.length > 0 && node.specifiers.every((one) => one.importKind === 'type'));
  return typesOnly ? undefined : stringOf(node.source)?.replace(/^node:/, '');
}

/** Returns exported name → local name of everything that a declaration imports by name. */
export function importedNames(node: ImportDeclaration): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const one of node.specifiers) {
    if (one.importKind === 'type' || !one.imported) continue;
    const name = isIdentifier(one.imported) ? one.imported.name : stringOf(one.imported);
    if (name !== undefined) names.set(name, one.local.name);
  }
  return names;
}
