import {
  isJsonObject,
  type JsonObject,
  openRpcDocument,
  type OpenRpcDocument,
  type OpenRpcMethod,
  resolveSchema,
  type SchemaLookup,
} from '@gatehouse/contract';
import { usageError } from '../failure.ts';
import { nearest } from '../nearest.ts';
import { version } from '../version.ts';

/** A method as needed by the command line. */
export interface MethodShape {
  readonly method: OpenRpcMethod;
  /** The parameters as one object schema. */
  readonly params: JsonObject;
  readonly lookup: SchemaLookup;
}

export function loadMethods(): OpenRpcDocument {
  return openRpcDocument({ version });
}

export function findMethod(document: OpenRpcDocument, name: string): MethodShape {
  const method = document.methods.find((one) => one.name === name);
  if (method === undefined) {
    const likely = nearest(
      name,
      document.methods.map((one) => one.name),
    );
    throw usageError(
      `Unknown method ${name}.`,
      likely === undefined ? '`gatehouse call --list` lists all methods.' : `Did you mean ${likely}? \`gatehouse call --list\` lists all methods.`,
    );
  }
  return {
    method,
    params: { type: 'object', properties: Object.fromEntries(method.params.map((param) => [param.name, param.schema])), additionalProperties: false },
    lookup: (id) => document.components.schemas[id],
  };
}

/** Returns the possible schemas of a value: the alternatives of a union, or the schema itself. */
export function alternativesOf(schema: JsonObject, lookup: SchemaLookup): JsonObject[] {
  const resolved = resolveSchema(schema, lookup).schema;
  const choices = resolved['anyOf'] ?? resolved['oneOf'];
  return Array.isArray(choices) ? choices.filter(isJsonObject).flatMap((choice) => alternativesOf(choice, lookup)) : [resolved];
}

/** Converts `agentId` to `agent-id`. */
export function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
