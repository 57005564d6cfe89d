// The graph that is measured: layers of steps, each of which needs two of the layer before. As Laneway and as Dagu write it.

export interface Shape {
  layers: number;
  width: number;
}

function needs(layer: number, place: number, width: number): string[] {
  if (layer === 0) return [];
  return [`s${layer - 1}-${place}`, `s${layer - 1}-${(place + 1) % width}`];
}

export function laneway({ layers, width }: Shape, run = 'true'): string {
  const lines = ['name: measured', 'max_parallel: 50', 'steps:'];
  for (let layer = 0; layer < layers; layer++) {
    for (let place = 0; place < width; place++) {
      const of = needs(layer, place, width);
      lines.push(`  s${layer}-${place}: {${of.length > 0 ? `needs: [${of.join(', ')}], ` : ''}run: "${run}"}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

export function dagu({ layers, width }: Shape): string {
  const lines = ['type: graph', 'steps:'];
  for (let layer = 0; layer < layers; layer++) {
    for (let place = 0; place < width; place++) {
      const of = needs(layer, place, width);
      lines.push(`  - name: s${layer}-${place}`, '    command: /bin/true');
      if (of.length > 0) lines.push(`    depends: [${of.join(', ')}]`);
    }
  }
  return `${lines.join('\n')}\n`;
}
