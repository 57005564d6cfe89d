<<<<<<<< HEAD:crates/laneway-server/web/assets/NewWorkflow-tgueyoAZ.js
import{W as e,a as t,at as n,ot as r,rt as i}from"./words-m6AXZLeD.js";import{t as a}from"./Page-DotIA3zY.js";import{t as o}from"./Source-B-at9VuP.js";function s(s,c){r(c,!0);{let n=i(()=>t(`workflow.new_title`)),r=i(()=>t(`workflow.new_about`));a(s,{get title(){return e(n)},get about(){return e(r)},children:(e,t)=>{o(e,{name:null,document:`name: first
========
import{W as e,a as t,at as n,ot as r,rt as i}from"./words-DpOiF0jJ.js";import{t as a}from"./Page-DvwsXEPE.js";import{t as o}from"./Source-BhwzC6At.js";function s(s,c){r(c,!0);{let n=i(()=>t(`workflow.new_title`)),r=i(()=>t(`workflow.new_about`));a(s,{get title(){return e(n)},get about(){return e(r)},children:(e,t)=>{o(e,{name:null,document:`name: first
>>>>>>>> faces:crates/laneway-server/web/assets/NewWorkflow-BeEa6rjI.js
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