import { versionOf, type NamedSource } from './engine/source-version.js';
import type { Catalog } from './engine/catalog.js';
import type { HoldfastOptions } from './holdfast-options.js';

/** The version of the application, as given or made of the source of its workflows. */
export function appVersionOf(option: HoldfastOptions['appVersion'], catalog: Catalog): string {
  if (option === undefined || typeof option === 'string') return option ?? '';
  const also = option.also.map((text): NamedSource => ({
    kind: 'also',
    name: typeof text === 'string' ? '' : text.name,
    text,
  }));
  return versionOf([...catalog.sources, ...also]);
}
