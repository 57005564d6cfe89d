import{W as e,a as t,at as n,ot as r,rt as i}from"./words-D-J2MAG0.js";import{t as a}from"./Page-BmCYPbA0.js";import{t as o}from"./Source-C2qx72bm.js";function s(s,c){r(c,!0);{let n=i(()=>t(`workflow.new_title`)),r=i(()=>t(`workflow.new_about`));a(s,{get title(){return e(n)},get about(){return e(r)},children:(e,t)=>{o(e,{name:null,document:`name: first
params:
  who: {type: string, default: world}

steps:
  greet:
    env: {WHO: "\${{ params.who }}"}
    run: echo "hello $WHO"
  part:
    needs: [greet]
    run: echo "goodbye"
`,fresh:!0})},$$slots:{default:!0}})}n()}export{s as default};