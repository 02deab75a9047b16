import { RegistrationError, WorkflowNotRegisteredError } from '../errors/usage-errors.js';
import { compensationBody } from './compensation-body.js';
import { definitionOf, workflowDefinitionOf, type StepDefinition, type WorkflowDefinition } from './definitions.js';
import type { TransactionDefinition } from './transaction-definition.js';
import type { NamedSource } from './source-version.js';

/** An object whose `@Workflow` methods can be run, under a name by which recovery finds it again. */
export interface NamedInstance {
  readonly name: string;
  readonly instance: object;
}

/** What can be given as `workflows`: a class, a function made by `defineWorkflow`, or a named object. */
export type WorkflowSource = object | NamedInstance;

interface Entry {
  readonly definition: WorkflowDefinition;
  /** By instance name; the empty name stands for static methods and functions. */
  readonly selves: Map<string, unknown>;
}

const NO_INSTANCE = '';

/** The workflows that one Holdfast can run: by name, and for methods of objects by the object's name. */
export class Catalog {
  readonly #entries = new Map<string, Entry>();
  /** Steps of the classes that are registered. */
  readonly #steps = new Set<StepDefinition>();

  /** @throws RegistrationError for a source without workflows, and for a name that is taken. */
  constructor(sources: readonly WorkflowSource[]) {
    for (const source of sources) this.#addSource(source);
  }

  get names(): readonly string[] {
    return [...this.#entries.keys()];
  }

  get definitions(): readonly WorkflowDefinition[] {
    return [...this.#entries.values()].map(({ definition }) => definition);
  }

  /** What an app version can be made of. */
  get sources(): readonly NamedSource[] {
    return [...this.definitions, ...this.#steps].map(({ kind, name, body }) => ({ kind, name, text: body }));
  }

  /** @throws RegistrationError for a transaction of a data source that is none of these. */
  assertDataSources(dataSources: readonly object[]): void {
    for (const step of this.#steps) {
      const { dataSource } = (step as Partial<TransactionDefinition>).settings ?? {};
      if (dataSource === undefined || dataSources.includes(dataSource)) continue;
      throw new RegistrationError(
        `Transaction "${step.name}" is of data source "${dataSource.name}": add that to "dataSources" of launch.`,
      );
    }
  }

  /** The definition of a workflow function, checked to be one that is registered here. */
  definitionOf(candidate: unknown): WorkflowDefinition {
    const definition = workflowDefinitionOf(candidate);
    if (definition === undefined) {
      if (typeof candidate === 'string') {
        throw new WorkflowNotRegisteredError(
          `Give the workflow's function instead of its name "${candidate}". A HoldfastClient takes names.`,
        );
      }
      throw new WorkflowNotRegisteredError(
        'This function is not a workflow. Decorate the method with @Workflow, or wrap the function with defineWorkflow.',
      );
    }
    this.assertRegistered(definition);
    return definition;
  }

  /** The definition of a workflow function or name, checked to be one that is registered here. */
  resolve(workflow: unknown): WorkflowDefinition {
    if (typeof workflow !== 'string') return this.definitionOf(workflow);
    const definition = this.find(workflow);
    if (definition === undefined) {
      throw new WorkflowNotRegisteredError(
        `There is no workflow "${workflow}" here. Add its class, object or function to "workflows" of launch.`,
      );
    }
    return definition;
  }

  /** @throws WorkflowNotRegisteredError */
  assertRegistered(definition: WorkflowDefinition): void {
    if (this.#entries.get(definition.name)?.definition !== definition) {
      throw new WorkflowNotRegisteredError(
        `Workflow "${definition.name}" is not registered here. Add its class, object or function to "workflows" of launch.`,
      );
    }
  }

  find(name: string): WorkflowDefinition | undefined {
    return this.#entries.get(name)?.definition;
  }

  /** What `this` is inside the workflow. @throws WorkflowNotRegisteredError for an instance that is not registered. */
  selfOf(definition: WorkflowDefinition, instance: string | null): unknown {
    const selves = this.#entries.get(definition.name)?.selves;
    const name = instance ?? NO_INSTANCE;
    if (selves?.has(name) === true) return selves.get(name);
    const known = [...(selves?.keys() ?? [])].filter((key) => key !== NO_INSTANCE);
    throw new WorkflowNotRegisteredError(
      instance === null
        ? `Workflow "${definition.name}" is a method of registered objects: choose one with the option "instance" (${known.join(', ')}).`
        : `No object is registered under the name "${instance}" for workflow "${definition.name}".`,
    );
  }

  /** The name under which an object is registered for a workflow. */
  instanceNameOf(definition: WorkflowDefinition, self: unknown): string | undefined {
    for (const [name, registered] of this.#entries.get(definition.name)?.selves ?? []) {
      if (registered === self) return name === NO_INSTANCE ? undefined : name;
    }
    return undefined;
  }

  #addSource(source: WorkflowSource): void {
    let found: number;
    if (typeof source === 'function') {
      const definition = workflowDefinitionOf(source);
      if (definition !== undefined) {
        this.#add(definition, NO_INSTANCE, undefined);
        return;
      }
      // Static methods may call each other through `this`, which is the class they were registered with.
      found = this.#addMethods(source, NO_INSTANCE, source);
    } else if (isNamedInstance(source)) {
      found = this.#addMethods(Object.getPrototypeOf(source.instance) as object | null, source.name, source.instance);
    } else {
      found = this.#addMethods(source, 'default', source);
    }
    if (found === 0) {
      throw new RegistrationError(
        'One of the "workflows" has no @Workflow method. Static methods: give the class. Methods of objects: give { name, instance }.',
      );
    }
  }

  #addMethods(holder: object | null, instance: string, self: unknown): number {
    let found = 0;
    for (let level = holder; level !== null && level !== Object.prototype && level !== Function.prototype;) {
      for (const key of Reflect.ownKeys(level)) {
        const definition = definitionOf(Object.getOwnPropertyDescriptor(level, key)?.value);
        if (definition !== undefined && definition.kind !== 'workflow') this.#addStep(definition, self);
        if (definition?.kind !== 'workflow') continue;
        found += 1;
        this.#add(definition, instance, self);
      }
      level = Object.getPrototypeOf(level) as object | null;
    }
    return found;
  }

  /** @throws RegistrationError for a step whose options name methods that are not there, or are of no use. */
  #addStep(definition: StepDefinition, self: unknown): void {
    this.#steps.add(definition);
    if (definition.compensate !== undefined) compensationBody(definition.compensate, definition.name, self);
  }

  #add(definition: WorkflowDefinition, instance: string, self: unknown): void {
    const entry = this.#entries.get(definition.name);
    if (entry === undefined) {
      this.#entries.set(definition.name, { definition, selves: new Map([[instance, self]]) });
      return;
    }
    if (entry.definition !== definition) {
      throw new RegistrationError(
        `Two workflows are named "${definition.name}". Give one of them another name with the option "name".`,
      );
    }
    if (entry.selves.has(instance) && entry.selves.get(instance) !== self) {
      throw new RegistrationError(
        `Two objects are registered under the name "${instance}" for workflow "${definition.name}". Name them apart: { name, instance }.`,
      );
    }
    entry.selves.set(instance, self);
  }
}

function isNamedInstance(source: object): source is NamedInstance {
  const { name, instance } = source as Partial<NamedInstance>;
  return typeof name === 'string' && name !== '' && typeof instance === 'object';
}
